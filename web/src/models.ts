// The list of models: asked for once, then kept up to date by the server's events.
import { batch, effect, signal } from '@preact/signals';
import { engineState, hasEngine } from './engine';
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
  changed?: number; // when its files changed last, in seconds
  state: 'ready' | 'training' | 'interrupted' | 'failed';
  usable?: boolean; // it has weights, if only those of a checkpoint
  done?: number;
  epochs?: number;
  of_epochs?: number;
  resume?: string; // the command that resumes it, if its training was interrupted
  error?: string;
  examples?: string[];
  gold?: boolean;
  image?: { size: number; channels: number; classes: string[] };
  objective?: string;
  longest?: number;
}
/** The training that the server has started, where there was no model. */
export interface Background {
  state: 'training' | 'done' | 'failed';
  name: string;
  error?: string;
}
interface Listed {
  models: Model[];
  background?: Background | null;
}
export const models = signal<Model[] | null>(null);
export const background = signal<Background | null>(null);
export const modelsFailed = signal<Failure | null>(null);
export const training = signal<Record<string, { done: number; line?: string }>>({});
export const streamed = signal<{ view: string; tokens: string[] } | null>(null);
export const metrics = signal<{ id: string; row: Record<string, number> } | null>(null);

export const ofTask = (task: Model['task']) => (models.value ?? []).filter((model) => model.task === task);
/** Whether a model is the one that an address or a control names: by its name, which stays when the server is started anew. */
export const isNamed = (model: Model, name: string) => model.name === name || model.id === name;
export const latest = (all: Model[]) => all.reduce<Model | null>((best, one) => (best && (best.changed ?? 0) >= (one.changed ?? 0) ? best : one), null);
/** The model with this name, or else the one that was ready last, or one whose training was interrupted. */
export const chosen = (task: Model['task'], name: string, fits: (model: Model) => boolean = () => true) => {
  const all = ofTask(task).filter((model) => (model.usable ?? model.state === 'ready') && fits(model));
  const last = (state: Model['state']) => latest(all.filter((model) => model.state === state));
  return all.find((model) => isNamed(model, name)) ?? last('ready') ?? last('interrupted');
};

const take = (listed: Listed) =>
  batch(() => {
    models.value = listed.models;
    background.value = listed.background ?? null;
  });

export async function loadModels() {
  try {
    take(await get<Listed>('/models'));
    modelsFailed.value = null;
  } catch (problem) {
    modelsFailed.value = problem as Failure;
    if (!recorded && !hasEngine) setTimeout(loadModels, 2000);
  }
}

export function watchModels() {
  void loadModels();
  // An engine that has failed was started again by some question.
  effect(() => void (engineState.value === 'ready' && modelsFailed.peek() && loadModels()));
  listen({
    models: take,
    progress: ({ id, done, line }) => (training.value = { ...training.peek(), [id]: { done, line } }),
    metrics: (data) => (metrics.value = data),
    token: ({ view, token }) => {
      const now = streamed.peek();
      streamed.value = now?.view === view ? { view, tokens: [...now!.tokens, token] } : { view, tokens: [token] };
    },
  });
}
