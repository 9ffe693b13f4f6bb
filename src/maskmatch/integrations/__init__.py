"""Other libraries and frameworks call the classifier: one file each, thin. Import the file that you need."""
