"""A validator for the JSON Schemas in docs/json, of the keywords that they use; any other is an error."""
import json
import re

TYPES = {'string': str, 'boolean': bool, 'object': dict, 'array': list, 'null': type(None)}
# What says nothing about a value.
NOTES = {'$schema', '$defs', 'title', 'description', 'x-unit'}


def is_a(value, kind):
    if kind == 'integer':
        return isinstance(value, int) and not isinstance(value, bool)
    if kind == 'number':
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    return isinstance(value, TYPES[kind])


class Schemas:
    def __init__(self, folder):
        self.files = {path.name: json.loads(path.read_text()) for path in folder.glob('*.json')}

    def names(self):
        """Verbs and actions that have a schema."""
        return {name.removesuffix('.json').replace('-', ' ') for name in self.files} - {'common'}

    def problems(self, value, name):
        """What is wrong with a verb's value: a list of sentences."""
        file = name.replace(' ', '-') + '.json'
        return list(self._check(value, self.files[file], file, '$'))

    def failure_problems(self, value):
        return list(self._check(value, self.files['common.json']['$defs']['failure'], 'common.json', '$'))

    def _resolve(self, reference, file):
        name, _, place = reference.partition('#')
        schema = self.files[name or file]
        for part in place.strip('/').split('/') if place else []:
            schema = schema[part]
        return schema, name or file

    def _check(self, value, schema, file, path):
        for keyword in schema.keys() - NOTES:
            yield from getattr(self, '_' + keyword.strip('$'))(value, schema, file, path)

    def _ref(self, value, schema, file, path):
        target, file = self._resolve(schema['$ref'], file)
        yield from self._check(value, target, file, path)

    def _type(self, value, schema, file, path):
        kinds = schema['type'] if isinstance(schema['type'], list) else [schema['type']]
        if not any(is_a(value, kind) for kind in kinds):
            yield '%s is %r, not %s' % (path, value, ' or '.join(kinds))

    def _enum(self, value, schema, file, path):
        if value not in schema['enum']:
            yield '%s is %r, not one of %s' % (path, value, schema['enum'])

    def _const(self, value, schema, file, path):
        if value != schema['const']:
            yield '%s is %r, not %r' % (path, value, schema['const'])

    def _pattern(self, value, schema, file, path):
        if isinstance(value, str) and not re.search(schema['pattern'], value):
            yield '%s is %r, not like %s' % (path, value, schema['pattern'])

    def _minimum(self, value, schema, file, path):
        if is_a(value, 'number') and value < schema['minimum']:
            yield '%s is %r, less than %r' % (path, value, schema['minimum'])

    def _items(self, value, schema, file, path):
        for index, item in enumerate(value if isinstance(value, list) else []):
            yield from self._check(item, schema['items'], file, '%s[%d]' % (path, index))

    def _required(self, value, schema, file, path):
        for name in schema['required'] if isinstance(value, dict) else []:
            if name not in value:
                yield '%s has no %s' % (path, name)

    def _properties(self, value, schema, file, path):
        for name, inner in schema['properties'].items():
            if isinstance(value, dict) and name in value:
                yield from self._check(value[name], inner, file, '%s.%s' % (path, name))

    def _additionalProperties(self, value, schema, file, path):
        more = schema['additionalProperties']
        for name in value.keys() - schema.get('properties', {}).keys() if isinstance(value, dict) else []:
            if more is False:
                yield '%s has %s, which the schema lacks' % (path, name)
            else:
                yield from self._check(value[name], more, file, '%s.%s' % (path, name))

    def _anyOf(self, value, schema, file, path):
        found = [list(self._check(value, choice, file, path)) for choice in schema['anyOf']]
        if all(found):
            yield from min(found, key=len)
