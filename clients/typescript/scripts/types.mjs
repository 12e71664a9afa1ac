// JSON Schema, as far as the server's description uses it, as types.

/** Keywords that say what a type can't: how long, how large, how many. */
const LIMITS =
  "exclusiveMaximum exclusiveMinimum format maxItems maxLength maxProperties maximum minItems minLength minProperties minimum multipleOf pattern uniqueItems";
const TYPES = "$ref additionalProperties anyOf const enum items oneOf prefixItems properties propertyNames required type";
const NOTES = "default deprecated description examples title";
const KNOWN = new Set([LIMITS, TYPES, NOTES].join(" ").split(" "));

export function camel(name) {
  return name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
}

export function title(name) {
  return name
    .split(/[._]/)
    .map((part) => part[0].toUpperCase() + part.slice(1))
    .join("");
}

/** What a schema is called here: a page of something is generic. */
export function nameOf(name) {
  return name.replace(/^Page_dict_str__Any__$/, "Page<Record<string, unknown>>").replace(/^Page_(\w+)_$/, "Page<$1>");
}

export function doc(text, indent = "") {
  if (!text) return "";
  const lines = text.trim().replaceAll("*/", "*\\/").split("\n");
  if (lines.length === 1) return `${indent}/** ${lines[0]} */\n`;
  return `${indent}/**\n${lines.map((line) => `${indent} * ${line}`.trimEnd() + "\n").join("")}${indent} */\n`;
}

export function interfaceOf(name, schema) {
  if (!schema.properties) return `${doc(schema.description)}export type ${name} = ${typeOf(schema)};\n`;
  return `${doc(schema.description)}export interface ${name} ${members(schema, "")}\n`;
}

export function typeOf(schema, indent = "") {
  const strange = Object.keys(schema).find((key) => !KNOWN.has(key));
  if (strange) throw new Error(`the description uses ${strange}, which scripts/types.mjs does not know`);
  if (schema.$ref) return nameOf(schema.$ref.split("/").at(-1));
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const kinds = schema.anyOf ?? schema.oneOf ?? (Array.isArray(schema.type) ? schema.type.map((type) => ({ type })) : undefined);
  if (kinds) return [...new Set(kinds.map((kind) => typeOf(kind, indent)))].join(" | ");
  return plain(schema, indent);
}

function plain(schema, indent) {
  switch (schema.type) {
    case "string":
    case "boolean":
    case "null":
      return schema.type;
    case "integer":
    case "number":
      return "number";
    case "array":
      if (schema.prefixItems) return `[${schema.prefixItems.map((item) => typeOf(item, indent)).join(", ")}]`;
      return arrayOf(schema.items ? typeOf(schema.items, indent) : "unknown");
    case "object":
      return schema.properties ? members(schema, indent) : record(schema, indent);
    case undefined:
      return "unknown";
    default:
      throw new Error(`the description has the type ${schema.type}, which scripts/types.mjs does not know`);
  }
}

function arrayOf(item) {
  return /[ |]/.test(item) ? `(${item})[]` : `${item}[]`;
}

function record(schema, indent) {
  const names = schema.propertyNames?.enum ? typeOf(schema.propertyNames) : "string";
  const values = typeof schema.additionalProperties === "object" ? typeOf(schema.additionalProperties, indent) : "unknown";
  return names === "string" ? `Record<string, ${values}>` : `Partial<Record<${names}, ${values}>>`;
}

function members(schema, indent) {
  const inner = `${indent}  `;
  const lines = Object.entries(schema.properties).map(([name, property]) => {
    const optional = schema.required?.includes(name) ? "" : "?";
    const about = property.description ? doc(property.description, inner) : "";
    return `${about}${inner}${name}${optional}: ${typeOf(property, inner)};\n`;
  });
  return `{\n${lines.join("")}${indent}}`;
}
