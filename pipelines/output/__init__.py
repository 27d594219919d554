"""What is written: schemas, rows, checksums, part files and the folder that holds them."""
