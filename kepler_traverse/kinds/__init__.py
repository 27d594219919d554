"""Result kinds: one module each with its code for CPU and GPU, their list, and what all share."""
