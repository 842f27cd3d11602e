// The packed engine under Node, for tests and measurements: the page's own worker, in a thread of Node. `QKV_ENGINE` names
// another folder than web/dist/engine.
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { gunzipSync } from 'node:zlib';

const packed = process.env.QKV_ENGINE ?? join(dirname(fileURLToPath(import.meta.url)), '../dist/engine');
const part = (name) => gunzipSync(readFileSync(join(packed, name)));

// What a worker of a browser has.
const browser = `
const { parentPort } = require('node:worker_threads');
globalThis.postMessage = (message) => parentPort.postMessage(message);
parentPort.on('message', (data) => globalThis.onmessage({ data }));
`;

/** Files of the run folders in `models`, as a page has them. */
export function files_of(models) {
  const out = [];
  for (const model of readdirSync(models))
    for (const file of readdirSync(join(models, model)))
      if (statSync(join(models, model, file)).isFile()) out.push({ path: `/models/${model}/${file}`, data: new Uint8Array(readFileSync(join(models, model, file))) });
  return out;
}

/** An engine with these files; `prelude` runs in the worker before it. */
export async function engine(files = [], prelude = '') {
  const worker = new Worker(browser + prelude + part('worker.js.gz').toString('utf8'), { eval: true });
  const waiting = new Map();
  const events = [];
  const listeners = new Set();
  let id = 0;
  const wasm = part('engine.wasm.gz');
  const catalogue = part('zh.po.gz').toString('utf8');
  await new Promise((ready, failed) => {
    worker.on('error', failed);
    worker.on('message', (message) => {
      if (message.type === 'ready') return ready();
      if (message.type === 'failed') return failed(new Error(message.reason));
      if (message.type === 'event') {
        events.push(message);
        listeners.forEach((listener) => listener(message));
        return undefined;
      }
      waiting.get(message.id)({ status: message.status, data: JSON.parse(message.json) });
      return waiting.delete(message.id);
    });
    worker.postMessage({ type: 'start', wasm: wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.length), files, catalogue });
  });
  return {
    events, // what the worker has told
    /** The next event for which `fits` is true. */
    next: (fits) =>
      new Promise((found) => {
        const listener = (message) => {
          if (!fits(message)) return;
          listeners.delete(listener);
          found(message.data);
        };
        listeners.add(listener);
      }),
    /** `path` is below /api/v1. With a body it is a POST. */
    ask: (path, body, { lang = 'en', view } = {}) =>
      new Promise((done) => {
        waiting.set(++id, done);
        const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(view ? { ...body, view } : body);
        worker.postMessage({ type: 'ask', id, method: body === undefined ? 'GET' : 'POST', path, body: text, lang, view });
      }),
    send: (message) => worker.postMessage(message),
    end: () => worker.terminate(),
  };
}
