"""What went wrong, in one sentence for the person who can mend it."""


class MaskMatchError(ValueError):
    """A mistake in what the user gave: a prompt, a label, a file, a folder.

    The message is one sentence that names what was wrong and what would be right. The command line prints it and
    exits with 1; it never shows a traceback for it.
    """


class TrainingDivergedError(MaskMatchError):
    """Training left weights that are no numbers: the classifier cannot be used any more."""
