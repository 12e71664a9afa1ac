// Runs the search of the site's theme in Node: `node site_search.js WORKER INDEX QUERY…` prints the first pages of each query.
const fs = require("node:fs");
const vm = require("node:vm");

const [worker, index, ...queries] = process.argv.slice(2);
const listeners = [];
let answered;
const scope = { console, addEventListener: (_, listener) => listeners.push(listener), postMessage: (message) => answered(message) };
scope.self = scope;
vm.runInNewContext(fs.readFileSync(worker, "utf8"), scope);

function ask(type, data) {
  return new Promise((resolve) => {
    answered = resolve;
    for (const listener of listeners) listener({ data: { type, data } });
  });
}

(async () => {
  await ask(0, { ...JSON.parse(fs.readFileSync(index, "utf8")), options: { suggest: false } });
  for (const query of queries) {
    const { items } = (await ask(2, query)).data;
    console.log(JSON.stringify(items.slice(0, 3).map(([best]) => best.location)));
  }
})();
