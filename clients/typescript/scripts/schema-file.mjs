// The text of src/schema.ts: a type for each schema, a method for each operation, and what the client needs to call it.

import { camel, doc, interfaceOf, nameOf, title, typeOf } from "./types.mjs";

const PREFIX = "/v1/projects/{project}";

const HEAD = `// Written by \`npm run generate\` from the server's description of its API. Edits here are overwritten.

import type { CallOptions, ChangeOptions, Extras, Operation } from "./operation.js";

/** A page of a list; \`next_cursor\` asks for the next one, and is null at the end. */
export interface Page<Item> {
  items: Item[];
  next_cursor: string | null;
}
`;

export function schemaFile(description) {
  const operations = operationsOf(description);
  const schemas = description.components.schemas;
  const complete = answered(description, operations);
  const parts = [HEAD];
  for (const [name, schema] of Object.entries(schemas)) {
    const empty = schema.properties && !Object.keys(schema.properties).length;
    if (nameOf(name) === name && !empty) parts.push(interfaceOf(name, complete.has(name) ? whole(schema) : schema));
  }
  for (const each of operations) {
    if (each.query.length) parts.push(interfaceOf(each.request, querySchema(each)));
  }
  parts.push(...namespaces(description, operations), table(operations));
  return parts.join("\n");
}

function operationsOf(description) {
  return Object.entries(description.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      const id = operation.operationId;
      const tag = operation.tags[0];
      const verb = id.split(".").at(-1);
      const parameters = operation.parameters ?? [];
      const query = parameters.filter((each) => each.in === "query");
      const body = bodyOf(description, operation);
      const [media, content] = Object.entries(operation.responses[200].content)[0];
      const result = typeOf(content.schema);
      const paged = query.some((each) => each.name === "cursor") && result.startsWith("Page<");
      return {
        id,
        path,
        operation,
        query,
        body,
        result,
        method: method.toUpperCase(),
        namespace: tag === "memory" ? "" : tag,
        verb,
        places: parameters.filter((each) => each.in === "path" && each.name !== "project").map((each) => each.name),
        fields: query.length > 0 || body !== undefined,
        required: body ? body.required : query.some((each) => each.required),
        request: body ? typeOf(body.content["application/json"].schema) : `${title(id)}Request`,
        ifMatch: parameters.some((each) => each.name === "If-Match"),
        text: media === "text/plain",
        iterate: paged ? (verb === "list" ? "iterate" : camel(`iterate_${verb}`)) : undefined,
        known: operation["x-heedful"] ?? { repeatable: true, slow: false, missing: null, callbacks: [] },
      };
    }),
  );
}

/** The body, if it has any fields. */
function bodyOf(description, operation) {
  const schema = operation.requestBody?.content["application/json"].schema;
  const fields = schema && description.components.schemas[schema.$ref.split("/").at(-1)].properties;
  return fields && Object.keys(fields).length ? operation.requestBody : undefined;
}

/** Schemas that only answers have: all their fields are there. */
function answered(description, operations) {
  const asked = new Set();
  const told = new Set();
  for (const each of operations) {
    collect(description, [each.body, each.query], asked);
    collect(description, each.operation.responses, told);
  }
  return new Set([...told].filter((name) => !asked.has(name)));
}

function collect(description, value, found) {
  if (value === null || typeof value !== "object") return;
  const place = typeof value.$ref === "string" ? value.$ref.split("/").slice(1) : undefined;
  if (place?.[1] === "schemas") {
    const name = place[2];
    if (found.has(name)) return;
    found.add(name);
    collect(description, description.components.schemas[name], found);
    return;
  }
  if (place) return collect(description, description.components[place[1]][place[2]], found);
  Object.values(value).forEach((each) => collect(description, each, found));
}

function whole(schema) {
  return schema.properties ? { ...schema, required: Object.keys(schema.properties) } : schema;
}

function querySchema(each) {
  return {
    type: "object",
    properties: Object.fromEntries(
      each.query.map((one) => [
        one.name,
        { ...(one.schema ?? one.content["application/json"].schema), description: one.description },
      ]),
    ),
    required: each.query.filter((one) => one.required).map((one) => one.name),
    additionalProperties: false,
  };
}

function namespaces(description, operations) {
  const about = Object.fromEntries(description.tags.map((tag) => [tag.name, tag.description]));
  const names = [...new Set(operations.map((each) => each.namespace))].filter(Boolean);
  const made = names.map((name) => {
    const methods = operations.filter((each) => each.namespace === name).flatMap(methodsOf);
    return `${doc(about[name])}export interface ${title(name)}Methods {\n${methods.join("")}}\n`;
  });
  const own = operations.filter((each) => !each.namespace).flatMap(methodsOf);
  const members = names.map((name) => `  readonly ${camel(name)}: ${title(name)}Methods;\n`);
  return [...made, `${doc("One project on a server.")}export interface Heedful {\n${members.join("")}${own.join("")}}\n`];
}

function methodsOf(each) {
  const places = each.places.map((name) => `${name}: string`);
  const fields = each.fields ? [`fields${each.required ? "" : "?"}: ${each.request}`] : [];
  const extras = [...each.known.callbacks.map(camel), ...(each.ifMatch ? ["ifMatch"] : [])];
  const base = each.method === "GET" ? "CallOptions" : "ChangeOptions";
  const options = extras.length ? `${base} & Pick<Extras, ${extras.map((name) => `"${name}"`).join(" | ")}>` : base;
  const given = [...places, ...fields, `options?: ${options}`].join(", ");
  const result = each.result === "null" ? "void" : each.result;
  const about = doc([each.operation.summary, each.operation.description].filter(Boolean).join("\n\n"), "  ");
  const methods = [`${about}  ${camel(each.verb)}(${given}): Promise<${result}>;\n`];
  if (each.iterate) {
    const item = each.result.slice("Page<".length, -1);
    const all = doc(`All items of \`${camel(each.verb)}\`, page by page as they are needed; \`limit\` is the size of a page.`, "  ");
    methods.push(`${all}  ${each.iterate}(${given}): AsyncGenerator<${item}, void>;\n`);
  }
  return methods;
}

function table(operations) {
  const lines = operations.map((each) => {
    const { repeatable, slow, missing, callbacks } = each.known;
    const entry = {
      method: each.method,
      path: each.path.replace(PREFIX, "{project}"),
      places: each.places,
      fields: each.body ? "body" : each.query.length ? "query" : undefined,
      once: !repeatable || undefined,
      slow: slow || undefined,
      missing: missing ?? undefined,
      callbacks: callbacks.length ? Object.fromEntries(callbacks.map((name) => [name, camel(name)])) : undefined,
      text: each.text || undefined,
      iterate: each.iterate,
    };
    return `  "${[each.namespace, each.verb].filter(Boolean).map(camel).join(".")}": ${JSON.stringify(entry)},\n`;
  });
  return `/** How each method is called over the wire. */\nexport const OPERATIONS: Readonly<Record<string, Operation>> = {\n${lines.join("")}};\n`;
}
