"""Holds commands that aren't run against what the command says of itself (heddle help --json)."""
import re
import shlex

OPERATORS = {"&&", "||", "|", ";", "&", "(", ")", ";;", "|&"}
REDIRECTION = re.compile(r"[0-9]*(>|>>|<|<<<|>&|<&|&>)$")


class Commands:
    def __init__(self, table, source, built):
        """`table` is heddle help --json; `source` and `built` the folders that tools/… and build/… are looked for in."""
        self.verbs = {verb["name"]: verb for verb in table["verbs"]}
        self.source, self.built = source, built

    def problems(self, script, words_only=False):
        """What is wrong with the simple commands of a shell script. words_only: an option at the end may lack its value, as in running text."""
        found = []
        for line in script.replace("\\\n", " ").splitlines():
            try:
                lexer = shlex.shlex(re.sub(r"(^|\s)#.*", "", line), posix=True, punctuation_chars=True)
                lexer.whitespace_split = True
                words = list(lexer)
            except ValueError as error:
                found.append(f"{line}: {error}")
                continue
            command = []
            for word in [*words, ";"]:
                if word in OPERATORS:
                    found += self.simple(command, words_only)
                    command = []
                else:
                    command.append(word)
        return found

    def simple(self, words, words_only):
        words = list(words)
        while words and re.match(r"[A-Za-z_]\w*=", words[0]):
            words.pop(0)
        if words[:1] in (["nice"], ["time"], ["sudo"]):
            words.pop(0)
        if not words:
            return []
        name = words.pop(0)
        if name in ("heddle", "build/heddle"):
            return self.heddle(words, words_only)
        for prefix, folder in (("tools/", self.source), (".ci/", self.source), ("build/", self.built)):
            if name.startswith(prefix):
                path = folder / (name if prefix != "build/" else name.removeprefix(prefix))
                return [] if path.exists() else [f"{name}: there is no such program"]
        return []

    def heddle(self, words, words_only):
        """Of one command line: verb, action, options and values that are a choice."""
        if not words or words[0] == "--help":
            return []
        shown = "heddle " + " ".join(words)
        verb = self.verbs.get(words[0])
        if verb is None:
            return [] if words[0] in ("VERB", "…") else [f"{shown}: there is no verb {words[0]}"]
        words = words[1:]
        actions = {action["name"].split()[-1]: action for action in verb["actions"]}
        if words and words[0] in actions:
            verb, words = actions[words[0]], words[1:]
        elif actions and not verb["runs"] and words and not words[0].startswith("-") and words[0] != "ACTION":
            return [f"{shown}: {verb['name']} has no action {words[0]}"]
        options = {"--" + option["name"]: option for option in verb["options"]}
        options |= {"-" + option["letter"]: option for option in verb["options"] if "letter" in option}
        found, words = [], iter(words)
        for word in words:
            if word == "--":
                break
            if REDIRECTION.match(word):
                next(words, None)
                continue
            if not word.startswith("-") or word == "-" or re.match(r"-\d", word):
                continue
            name, equals, value = word.partition("=")
            option = options.get(name)
            if option is None:
                found.append(f"{shown}: {verb['name']} has no option {name}")
                continue
            if option["kind"] == "flag":
                continue
            value = value if equals else next(words, None)
            if value is None:
                found += [] if words_only else [f"{shown}: {name} has no value"]
            elif option["value"]["type"] == "choice" and value.islower() and value not in option["value"]["choices"]:
                found.append(f"{shown}: {name} has no value {value}")
        return found
