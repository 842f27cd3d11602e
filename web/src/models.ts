// The list of models: asked for once, then kept up to date by the server's events.
import { signal } from '@preact/signals';
import { get, listen, recorded, Failure } from './api';

export interface Model {
  id: string;
  name: string;
  task: 'translation' | 'language' | 'vision';
  kind: string;
  summary?: string;
  parameters?: number;
  layers?: { encoder?: number; decoder?: number };
  heads?: number;
  maps?: string[];
  state: 'ready' | 'training' | 'failed';
  done?: number;
  error?: string;
  examples?: string[];
  gold?: boolean;
  image?: { size: number; channels: number; classes: string[] };
  objective?: string;
  longest?: number;
}
export const models = signal<Model[] | null>(null);
export const modelsFailed = signal<Failure | null>(null);
export const training = signal<Record<string, { done: number; line?: string }>>({});
export const streamed = signal<{ view: string; tokens: string[] } | null>(null);
export const metrics = signal<{ id: string; row: Record<string, number> } | null>(null);

export const ofTask = (task: Model['task']) => (models.value ?? []).filter((model) => model.task === task);
/** The model with this id, or else the first that is ready. */
export const chosen = (task: Model['task'], id: string, fits: (model: Model) => boolean = () => true) => {
  const all = ofTask(task).filter((model) => model.state === 'ready' && fits(model));
  return all.find((model) => model.id === id) ?? all[0] ?? null;
};

export async function loadModels() {
  try {
    models.value = (await get<{ models: Model[] }>('/models')).models;
    modelsFailed.value = null;
  } catch (problem) {
    modelsFailed.value = problem as Failure;
    if (!recorded) setTimeout(loadModels, 2000);
  }
}

export function watchModels() {
  void loadModels();
  listen({
    models: (data) => (models.value = data.models),
    progress: ({ id, done, line }) => (training.value = { ...training.peek(), [id]: { done, line } }),
    metrics: (data) => (metrics.value = data),
    token: ({ view, token }) => {
      const now = streamed.peek();
      streamed.value = now?.view === view ? { view, tokens: [...now!.tokens, token] } : { view, tokens: [token] };
    },
  });
}
