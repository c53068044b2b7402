// Settings of a component: what they are, and what the user made of them.
'use strict';

// schemaOf is the JSON Schema of settings that are true or false.
function schemaOf(component, settings) {
  const properties = {};
  for (const s of settings) properties[s.name] = { type: 'boolean', default: s.default, description: s.doc };
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema', title: component.type, description: component.summary,
    type: 'object', additionalProperties: false, properties,
  };
}

// fieldsOf documents settings.
function fieldsOf(settings) {
  return settings.map((s) => ({
    Name: s.name, Type: 'bool', Doc: s.doc, Default: String(s.default), Required: false, Enum: null, Min: '', Max: '', Fields: null,
  }));
}

// decode returns the settings with every default filled in, and all problems.
function decode(settings, text) {
  const given = text ? JSON.parse(text) ?? {} : {};
  const problems = [];
  const known = settings.map((s) => s.name);
  for (const [name, value] of Object.entries(given)) {
    if (!known.includes(name)) {
      problems.push({ path: name, summary: `unknown field "${name}"`, hint: `the fields are ${known.join(', ')}` });
    } else if (typeof value !== 'boolean') {
      problems.push({ path: name, summary: `expected true or false, got ${JSON.stringify(value)}` });
    }
  }
  const config = Object.fromEntries(settings.map((s) => [s.name, given[s.name] ?? s.default]));
  return { config, problems };
}

module.exports = { schemaOf, fieldsOf, decode };
