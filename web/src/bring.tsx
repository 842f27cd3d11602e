// Files that a person brings to a page with an engine: dropped anywhere on it, or chosen with the button in its footer.
import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { get, post, Failure } from './api';
import { putFiles } from './engine';
import { loadModels, Model, models } from './models';
import { bench, preset } from './store';
import { failureText } from './ui';
import { Key, t } from './words';

interface Said {
  key?: Key;
  values?: Record<string, string | number>;
  failure?: Failure;
  good?: boolean;
}
const said = signal<Said | null>(null);
const say = (key: Key, values?: Record<string, string | number>) => (said.value = { key, values });

type TextTaker = (file: File) => Promise<void>;
const takers = new Map<string, TextTaker>();
/** What a bench does with a text file that is dropped while it is shown. */
export const takeText = (name: string, taker: TextTaker) => void takers.set(name, taker);

const most = 256 << 20; // bytes of a model
const parts = /^(config\.yaml|model\.safetensors|images\.json|(vocab|tokenizer)\.\w+\.txt)$/;

interface Brought {
  folder: string;
  file: File;
}

/** All dropped files, and for a folder those directly inside. */
async function filesOf(data: DataTransfer): Promise<Brought[]> {
  const entries = [...data.items].filter((one) => one.kind === 'file').map((one) => ({ entry: one.webkitGetAsEntry?.() ?? null, file: one.getAsFile() }));
  const out: Brought[] = [];
  for (const { entry, file } of entries) {
    if (entry?.isDirectory) {
      const reader = (entry as FileSystemDirectoryEntry).createReader();
      const inside = await new Promise<FileSystemEntry[]>((done, failed) => reader.readEntries(done, failed));
      for (const one of inside.filter((each) => each.isFile)) out.push({ folder: entry.name, file: await new Promise((done, failed) => (one as FileSystemFileEntry).file(done, failed)) });
    } else if (file) {
      out.push({ folder: '', file });
    }
  }
  return out;
}

const homes: Record<Model['task'], string[]> = { translation: ['translate', 'heads', 'transformer', 'compare'], language: ['language'], vision: ['vision'] };

async function takeModel(all: Brought[]) {
  const config = all.find(({ file }) => file.name === 'config.yaml');
  const weights = all.find(({ file }) => file.name === 'model.safetensors');
  if (!config || !weights) return say('notOurModel', { file: all.find(({ file }) => /\.safetensors$/.test(file.name))?.file.name ?? all[0].file.name });
  const bytes = all.reduce((sum, { file }) => sum + file.size, 0);
  if (bytes > most) return say('modelTooLarge', { size: Math.round(bytes / 1e6), most: Math.round(most / 1e6) });
  const taken = new Set((models.value ?? []).map((one) => one.name));
  const wanted = (config.folder || 'model').replace(/[^\w.-]/g, '-');
  let name = wanted;
  for (let i = 2; taken.has(name); ++i) name = `${wanted}-${i}`;
  const files = await Promise.all(all.filter(({ file }) => parts.test(file.name)).map(async ({ file }) => ({ path: `/models/${name}/${file.name}`, data: new Uint8Array(await file.arrayBuffer()) })));
  await putFiles(files);
  const { models: listed } = await get<{ models: Model[] }>('/models');
  void loadModels();
  const found = listed.find((one) => one.name === name);
  if (!found || found.state === 'failed' || !found.usable) {
    said.value = found?.error ? { failure: { status: 400, error: found.error } } : { key: 'notOurModel', values: { file: weights.file.name } };
    return;
  }
  // Weights that cannot be read are only met when they are needed: better now.
  const { size = 28 } = found.image ?? {};
  if (found.task === 'translation') await post('/translate', { model: found.id, text: found.examples?.[0] ?? '.', beam: 1 });
  if (found.task === 'language') await post('/next', { model: found.id, prompt: found.examples?.[0] ?? 'a' });
  if (found.task === 'vision') await post('/classify', { model: found.id, pixels: Array.from({ length: size }, () => new Array(size).fill(0)) });
  said.value = { key: 'modelBrought', values: { name }, good: true };
  const home = homes[found.task].includes(bench.peek()) ? bench.peek() : homes[found.task][0];
  await loadModels();
  preset(home, { model: name });
  bench.value = home;
}

async function take(all: Brought[]) {
  said.value = null;
  if (!all.length) return;
  try {
    const isText = all.length === 1 && /\.(csv|tsv|txt)$/i.test(all[0].file.name) && !parts.test(all[0].file.name);
    const taker = takers.get(bench.peek());
    if (isText && taker) return await taker(all[0].file);
    if (isText) return void say('textNotHere', { file: all[0].file.name });
    await takeModel(all);
  } catch (problem) {
    said.value = { failure: (problem as Failure).error ? (problem as Failure) : { status: 500, error: 'engine' } };
  }
}

/** A bench tells the person about a file. */
export const tell = (next: Said | null) => void (said.value = next);

/** What became of the last file. */
export function Brought() {
  useEffect(() => {
    const over = (event: DragEvent) => event.preventDefault();
    const drop = (event: DragEvent) => {
      event.preventDefault();
      if (event.dataTransfer) void filesOf(event.dataTransfer).then(take);
    };
    addEventListener('dragover', over);
    addEventListener('drop', drop);
    return () => {
      removeEventListener('dragover', over);
      removeEventListener('drop', drop);
    };
  }, []);
  const now = said.value;
  if (!now) return null;
  const [line, hint] = now.failure ? failureText(now.failure) : [t(now.key!, now.values), undefined];
  return (
    <div class={now.good ? 'brought good' : 'brought'} role={now.good ? 'status' : 'alert'}>
      <b>{line}</b> {hint && <span>{hint}</span>}
      <button type="button" class="tool" aria-label={t('close')} onClick={() => (said.value = null)}>
        ×
      </button>
    </div>
  );
}

/** For those who do not drag. */
export function BringButton() {
  return (
    <label class="link bring">
      {t('bringModel')}
      <input type="file" multiple class="unseen" onChange={(event) => {
        const files = [...(event.currentTarget.files ?? [])].map((file) => ({ folder: '', file }));
        event.currentTarget.value = '';
        void take(files);
      }} />
    </label>
  );
}
