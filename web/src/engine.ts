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
/** "loading", "ready", or why there is none. */
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

let worker: Promise<Worker> | null = null;
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

async function begin(): Promise<Worker> {
  engineState.value = 'loading';
  try {
    const { worker: script, wasm, catalogue, files } = await parts();
    const made = new Worker(URL.createObjectURL(new Blob([script], { type: 'text/javascript' })));
    await new Promise<void>((ready, failed) => {
      made.onerror = (event) => failed(new Error(event.message));
      made.onmessage = ({ data }: MessageEvent<FromEngine>) => {
        if (data.type === 'ready') ready();
        else if (data.type === 'failed') failed(new Error(data.reason));
      };
      made.postMessage({ type: 'start', wasm, files, catalogue } satisfies ToEngine, [wasm]);
    });
    made.onmessage = ({ data }: MessageEvent<FromEngine>) => take(data);
    engineState.value = 'ready';
    return made;
  } catch (problem) {
    engineState.value = (problem as Error).message === 'simd' ? 'simd' : 'failed';
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
    return { status: 0, json: JSON.stringify({ error: engineState.value === 'simd' ? 'simd' : 'engine' }) };
  }
  const id = next++;
  return new Promise((done) => {
    waiting.set(id, done);
    to.postMessage({ type: 'ask', id, method, path, body, lang, view } satisfies ToEngine);
  });
}
export const putFiles = async (files: PackedFile[]) => (await started()).postMessage({ type: 'put', files } satisfies ToEngine);
/** Goes on with a training that /train/start has made, until it is done or paused. */
export const train = async (sentences: unknown[], lang: 'en' | 'zh') => (await started()).postMessage({ type: 'train', sentences, lang } satisfies ToEngine);
export const pause = async (paused: boolean) => (await started()).postMessage({ type: 'pause', paused } satisfies ToEngine);
