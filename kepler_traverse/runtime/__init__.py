"""What searches share at run time: progress, interrupts, one search at a time, text for people, sealed files."""
