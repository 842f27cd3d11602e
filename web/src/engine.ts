// The third door: the engine inside the page, unpacked and started when the first question needs it.
import type { FromEngine, PackedFile, ToEngine } from '../engine/protocol';
import { signal } from '@preact/signals';

/** Parts of the file, gzipped and in base64. */
interface Packed {
  worker: string;
  wasm: string;
  catalogue: string;
  files: { path: string; data: string }[];
}

const block = document.getElementById('qkv-engine');
export const hasEngine = block !== null;
/** What it is doing, or why there is none. */
export const engineState = signal<'idle' | 'loading' | 'ready' | 'simd' | 'failed'>('idle');

const listeners = new Map<string, Set<(data: any) => void>>();
/** Hears about a training in the page: "train", "train_look", "train_failed". */
export function hear(name: string, handle: (data: any) => void): () => void {
  if (!listeners.has(name)) listeners.set(name, new Set());
  listeners.get(name)!.add(handle);
  return () => listeners.get(name)!.delete(handle);
}

async function unpacked(base64: string): Promise<ArrayBuffer> {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip') as unknown as TransformStream<Uint8Array, Uint8Array>);
  return new Response(stream).arrayBuffer();
}

async function parts() {
  const packed: Packed = JSON.parse(block!.textContent!);
  const text = async (part: string) => new TextDecoder().decode(await unpacked(part));
  const files = await Promise.all(packed.files.map(async ({ path, data }) => ({ path, data: new Uint8Array(await unpacked(data)) })));
  return { worker: await text(packed.worker), wasm: await unpacked(packed.wasm), catalogue: await text(packed.catalogue), files };
}

// Two of the smallest modules there are: one adds vectors, one catches an exception.
const probes = [
  [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11],
  [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 8, 1, 6, 0, 6, 64, 25, 11, 11],
];
function canRun(): boolean {
  try {
    return typeof DecompressionStream === 'function' && probes.every((bytes) => WebAssembly.validate(new Uint8Array(bytes)));
  } catch {
    return false;
  }
}

let worker: Promise<Worker> | null = null;
const given: PackedFile[] = []; // files from outside the page, for an engine that is started again
const waiting = new Map<number, (answer: { status: number; json: string }) => void>();
let next = 1;

function take(message: FromEngine) {
  if (message.type === 'answer') {
    waiting.get(message.id)?.(message);
    waiting.delete(message.id);
  } else if (message.type === 'event') {
    listeners.get(message.name)?.forEach((handle) => handle(message.data));
  }
}

/** The worker is gone: whoever waits for it is told, and the next question starts another one. */
function lost() {
  worker = null;
  engineState.value = 'failed';
  for (const answer of waiting.values()) answer({ status: 500, json: JSON.stringify({ error: 'engine' }) });
  waiting.clear();
  listeners.get('train_failed')?.forEach((handle) => handle({ status: 500, error: 'engine' }));
}

async function begin(): Promise<Worker> {
  engineState.value = 'loading';
  try {
    if (!canRun()) throw new Error('simd');
    const { worker: script, wasm, catalogue, files } = await parts();
    const address = URL.createObjectURL(new Blob([script], { type: 'text/javascript' }));
    const made = new Worker(address);
    await new Promise<void>((ready, failed) => {
      made.onerror = (event) => failed(new Error(event.message));
      made.onmessage = ({ data }: MessageEvent<FromEngine>) => {
        if (data.type === 'ready') ready();
        else if (data.type === 'failed') failed(new Error(data.reason));
      };
      made.postMessage({ type: 'start', wasm, files: [...files, ...given], catalogue } satisfies ToEngine, [wasm]);
    });
    URL.revokeObjectURL(address);
    made.onmessage = ({ data }: MessageEvent<FromEngine>) => take(data);
    made.onerror = (event) => {
      event.preventDefault();
      made.terminate();
      lost();
    };
    engineState.value = 'ready';
    return made;
  } catch (problem) {
    const simd = (problem as Error).message === 'simd';
    engineState.value = simd ? 'simd' : 'failed';
    if (!simd) worker = null; // the next question tries again
    throw problem;
  }
}
const started = () => (worker ??= begin());

/** A request as over HTTP. */
export async function askEngine(method: string, path: string, body: string, lang: 'en' | 'zh', view?: string): Promise<{ status: number; json: string }> {
  let to: Worker;
  try {
    to = await started();
  } catch {
    return { status: 500, json: JSON.stringify({ error: engineState.value === 'simd' ? 'simd' : 'engine' }) };
  }
  const id = next++;
  return new Promise((done) => {
    waiting.set(id, done);
    to.postMessage({ type: 'ask', id, method, path, body, lang, view } satisfies ToEngine);
  });
}
export async function putFiles(files: PackedFile[]): Promise<void> {
  const to = await started();
  given.push(...files);
  to.postMessage({ type: 'put', files } satisfies ToEngine);
}
/** Continues a training that /train/start has made, until it is done or paused. */
export const train = async (sentences: unknown[], lang: 'en' | 'zh') => (await started()).postMessage({ type: 'train', sentences, lang } satisfies ToEngine);
export const pause = async (paused: boolean) => (await started()).postMessage({ type: 'pause', paused } satisfies ToEngine);
