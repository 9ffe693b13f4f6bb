"""Commands that the lab adds to the command line of maskmatch."""

from maskmatch.cli.lazy import CommandRow

COMMANDS = {
    "compare": CommandRow("maskmatch_lab.commands.compare:compare", "Compare methods on the same rows and seeds."),
    "study": CommandRow("maskmatch_lab.commands.study:study", "Run a study: experiments, a conclusion, a report."),
}
