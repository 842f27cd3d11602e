// The engine under Node, for tests and measurements: node engine/node.mjs REQUESTS.json prints the answers. A request is
// {"method", "path", "body"}; `QKV_WASM_BUILD` names another build than build/wasm.
import { createRequire } from 'node:module';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const made = process.env.QKV_WASM_BUILD ?? join(dirname(fileURLToPath(import.meta.url)), '../../build/wasm');

/** An engine with the run folders of `models`: ask(path, body) gives { status, data, milliseconds }. */
export async function engine(models) {
  const create = createRequire(import.meta.url)(join(made, 'engine.js'));
  const wasm = ['engine.small.wasm', 'engine.wasm'].map((name) => join(made, name)).find((path) => statSync(path, { throwIfNoEntry: false }));
  const made_ = await create({ wasmBinary: readFileSync(wasm) });
  const call = (name, returns, types = [], values = []) => made_.ccall(name, returns, types, values);
  for (const model of models ? readdirSync(models) : []) {
    made_.FS.mkdirTree(`/models/${model}`);
    for (const file of readdirSync(join(models, model))) {
      const path = join(models, model, file);
      if (statSync(path).isFile()) made_.FS.writeFile(`/models/${model}/${file}`, readFileSync(path));
    }
  }
  call('qkv_scan', null);
  return {
    put: (path, data) => {
      made_.FS.mkdirTree(dirname(path));
      made_.FS.writeFile(path, data);
    },
    ask: (path, body, method = body === undefined ? 'GET' : 'POST', chinese = 0) => {
      const start = performance.now();
      const json = call('qkv_ask', 'string', ['string', 'string', 'string', 'string', 'number'], [method, `/api/v1${path}`, '', body === undefined ? '' : JSON.stringify(body), chinese]);
      return { status: call('qkv_status', 'number'), data: JSON.parse(json), milliseconds: performance.now() - start };
    },
    memory: () => made_.HEAP8?.length,
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const here = await engine(process.argv[3]);
  for (const { method, path, body } of JSON.parse(readFileSync(process.argv[2], 'utf8'))) console.log(JSON.stringify(here.ask(path, body, method)));
}
