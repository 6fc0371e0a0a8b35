"""Writes docs/json.md from the JSON Schemas in docs/json/: json_doc.py [FOLDER]   (default: docs/json beside this script's folder)

The page goes to standard output.
"""
import json
import pathlib
import sys

ORDER = ["check", "key", "diff", "new", "tensors", "match", "view", "layout", "plan", "emit", "build", "pack", "inspect", "cache", "run", "reference", "verify", "bench", "tune",
         "profile", "targets", "doctor", "explain", "help", "version"]
HEAD = """# JSON

What `--json` prints: one value on standard output, for every verb and action. The schemas are [json/](json/), one file a verb, JSON Schema 2020-12; this
page is made of them (`python3 tools/json_doc.py > docs/json.md`), and the tests hold what the command prints against them. Nothing is printed that isn't here.

- Wrong usage (exit code 2) prints nothing on standard output.
- A verb that failed before it had a result prints a [failure](#failure) instead of what is below.
- Numbers that are infinite or NaN are null. Keys are SHA-256 in lower-case hex. Times are in the unit that stands beside them.
- A field in *italics* may be left out; its meaning says when.
- Fields may come to objects with new versions, codes and words don't change: `heddle version --json` says which it is.
"""


def type_of(schema):
    if "$ref" in schema:
        target = schema["$ref"]
        name = target.rsplit("/", 1)[-1].removesuffix(".json")
        return f"[{name}](#{name})"
    if "enum" in schema:
        return " ".join(f"`{word}`" for word in schema["enum"])
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    kind = schema["type"]
    if isinstance(kind, list):
        return " or ".join(kind)
    if kind == "array":
        items = schema["items"]
        return "list" if items.get("type") == "object" else f"list of {type_of(items)}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        inner = schema["additionalProperties"]
        return "object by name" if inner.get("type") == "object" else f"object of {type_of(inner)}"
    return kind


def rows(schema, path, optional=False):
    """Rows of the table: path, type, unit, meaning."""
    if path:
        name = f"`{path}`"
        yield f"| {'*' + name + '*' if optional else name} | {type_of(schema)} | {schema.get('x-unit', '')} | {schema.get('description', '')} |"
    if schema.get("type") == "array":
        if schema["items"].get("type") == "object":
            yield from rows_of_object(schema["items"], path + "[]")
    elif schema.get("type") == "object":
        yield from rows_of_object(schema, path)


def rows_of_object(schema, path):
    for name, inner in schema.get("properties", {}).items():
        yield from rows(inner, f"{path}.{name}" if path else name, name not in schema["required"])
    more = schema.get("additionalProperties")
    if isinstance(more, dict) and more.get("type") == "object":
        yield from rows_of_object(more, path + ".*")


def table(schema):
    if "anyOf" in schema:
        for choice in schema["anyOf"]:
            yield from table(choice)
        return
    found = list(rows(schema, ""))
    if not found:
        if schema.get("type") == "array" and "anyOf" in schema["items"]:
            yield "A list of:\n"
            yield from table(schema["items"])
        else:
            yield ("A list of " if schema.get("type") == "array" else "A ") + type_of(schema.get("items", schema)) + ".\n"
        return
    if schema.get("type") == "array":
        yield "A list of:\n"
    yield "| field | type | unit | |"
    yield "|---|---|---|---|"
    yield from found
    yield ""


def section(level, title, schema, description):
    yield f"{'#' * level} {title}\n"
    if description:
        yield description + "\n"
    yield from table(schema)
    for name, inner in schema.get("$defs", {}).items():
        yield from section(level + 1, name, inner, inner.get("description"))


def page(folder):
    schemas = {path.stem: json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))}
    common = schemas.pop("common")
    names = sorted(schemas, key=lambda name: (ORDER.index(name.split("-")[0]), name.count("-"), name))
    lines = [HEAD, "## Verbs\n"]
    for name in names:
        lines += section(3, name.replace("-", " "), schemas[name], schemas[name].get("description"))
    lines.append("## What several of them have\n")
    for name, schema in common["$defs"].items():
        lines += section(3, name, schema, schema.get("description"))
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent / "docs" / "json"
    sys.stdout.write(page(folder))
