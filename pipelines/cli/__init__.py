"""What a user gives and sees: options, settings files, signals, the terminal."""
