"""The pages of the workbench, one file each."""
