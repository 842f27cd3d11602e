// The engine in a Web Worker: requests of the explorer's API in, answers out; a training between them, slice by slice.
// docs/wasm.md describes the messages. The build puts emscripten's loader (`createQkv`) in front of this file.
import type { FromEngine, PackedFile, ToEngine } from './protocol';

interface Engine {
  ccall(name: string, returns: string | null, types: string[], values: unknown[]): unknown;
  FS: { mkdirTree(path: string): void; writeFile(path: string, data: Uint8Array): void };
}
declare function createQkv(options: {
  wasmBinary: ArrayBuffer;
  print: (line: string) => void;
  printErr: (line: string) => void;
  heard: (name: string, json: string) => void; // events of the engine, while a request runs
}): Promise<Engine>;

interface Ask {
  id: number;
  method: string;
  path: string;
  body: string;
  lang: 'en' | 'zh';
  view?: string;
}

const SLICE = 150; // milliseconds of training between two looks at the requests
const LOOK = 1000; // milliseconds between two looks at what the model writes

let engine: Engine | null = null;
let wasm: ArrayBuffer | null = null;
let catalogue = '';
const files = new Map<string, Uint8Array>(); // kept, so that the engine can be started anew
const asks: Ask[] = [];
let busy = false;

const say = (message: FromEngine) => postMessage(message);

function put(list: PackedFile[]) {
  for (const { path, data } of list) {
    engine!.FS.mkdirTree(path.slice(0, path.lastIndexOf('/')));
    engine!.FS.writeFile(path, data);
  }
  engine!.ccall('qkv_scan', null, [], []);
}

async function start() {
  engine = await createQkv({ wasmBinary: wasm!, print: () => {}, printErr: () => {}, heard: (name, json) => say({ type: 'event', name: name as 'token', data: JSON.parse(json) }) });
  if (catalogue) engine.ccall('qkv_catalogue', null, ['string'], [catalogue]);
  put([...files].map(([path, data]) => ({ path, data })));
}

/** An answer, whatever happens: a trap ends the engine, and a new one takes its place. */
async function answer(method: string, path: string, body: string, lang: 'en' | 'zh'): Promise<{ status: number; json: string }> {
  const [where, query] = path.split(/\?(.*)/s);
  try {
    if (!engine) await start();
    const json = engine!.ccall('qkv_ask', 'string', ['string', 'string', 'string', 'string', 'number'], [method, `/api/v1${where}`, query ?? '', body, lang === 'zh' ? 1 : 0]) as string;
    return { status: engine!.ccall('qkv_status', 'number', [], []) as number, json };
  } catch (problem) {
    engine = null;
    const data = { error: 'engine', hint: String((problem as Error)?.message ?? problem) };
    if (training && path !== '/train/advance') say({ type: 'event', name: 'train_failed', data: { status: 500, ...data } });
    training = null;
    return { status: 500, json: JSON.stringify(data) };
  }
}

interface Training {
  sentences: unknown[];
  lang: 'en' | 'zh';
  losses: number;
  looked: number;
  paused: boolean;
  done: boolean;
}
let training: Training | null = null;

/** One slice, and what the page is told about it. */
async function slice(now: Training) {
  const { status, json } = await answer('POST', '/train/advance', JSON.stringify({ milliseconds: SLICE, from: now.losses }), now.lang);
  const data = JSON.parse(json);
  if (status !== 200) {
    training = null;
    return say({ type: 'event', name: 'train_failed', data: { status, ...data } });
  }
  now.losses = data.epoch;
  now.done = data.done;
  say({ type: 'event', name: 'train', data });
  if (now.sentences.length && (now.done || performance.now() - now.looked > LOOK)) {
    const seen = await answer('POST', '/train/look', JSON.stringify({ sentences: now.sentences }), now.lang);
    if (seen.status === 200) say({ type: 'event', name: 'train_look', data: JSON.parse(seen.json) });
    now.looked = performance.now();
  }
}

// Messages that have come meanwhile are taken between two pieces of work.
const bell = new MessageChannel();
const breathe = () =>
  new Promise<void>((go) => {
    bell.port1.onmessage = () => go();
    bell.port2.postMessage(0);
  });

async function work() {
  if (busy) return;
  busy = true;
  while (asks.length || (training && !training.paused && !training.done)) {
    const next = asks.shift();
    if (next) {
      // A newer question of the same view makes this one superfluous.
      if (next.view && asks.some((other) => other.view === next.view)) say({ type: 'answer', id: next.id, status: 409, json: '{"error":"superseded"}' });
      else say({ type: 'answer', id: next.id, ...(await answer(next.method, next.path, next.body, next.lang)) });
    } else {
      await slice(training!);
    }
    await breathe();
  }
  busy = false;
}

onmessage = async ({ data }: MessageEvent<ToEngine>) => {
  switch (data.type) {
    case 'start':
      wasm = data.wasm;
      catalogue = data.catalogue ?? '';
      for (const file of data.files ?? []) files.set(file.path, file.data);
      if (!WebAssembly.validate(wasm)) return say({ type: 'failed', reason: 'simd' });
      try {
        await start();
        say({ type: 'ready' });
      } catch (problem) {
        say({ type: 'failed', reason: String((problem as Error)?.message ?? problem) });
      }
      return;
    case 'put':
      for (const file of data.files) files.set(file.path, file.data);
      try {
        if (engine) put(data.files);
        return say({ type: 'event', name: 'put', data: {} });
      } catch (problem) {
        // The next request starts the engine anew, without these files.
        for (const file of data.files) files.delete(file.path);
        engine = null;
        return say({ type: 'event', name: 'put', data: { error: 'engine', hint: String((problem as Error)?.message ?? problem) } });
      }
    case 'ask':
      asks.push(data);
      break;
    case 'train':
      training = { sentences: data.sentences, lang: data.lang, losses: 0, looked: 0, paused: false, done: false };
      break;
    case 'pause':
      if (training) training.paused = data.paused;
      break;
  }
  void work();
};
