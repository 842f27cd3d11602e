// The page's three doors to the engine: the server's HTTP, answers recorded in the file itself, and the engine in the page.
import { effect, signal, Signal } from '@preact/signals';
import { askEngine, engineState, hasEngine } from './engine';
import { bench, lang, owner } from './store';

export interface Failure {
  status: number;
  error: string;
  hint?: string;
}
export interface Answer<T> {
  data: T | null; // the newest answer, kept while the next one is on its way
  busy: boolean;
  failure: Failure | null;
}

/** Answers that `qkv inspect -o x.html` has put into the file: to every question with these fields and none of `without`. */
interface Recorded {
  path: string;
  body: Record<string, unknown>;
  without: string[];
  answer: unknown;
}
/** What `qkv serve --listen` asks for with every request; it came with the page's own address. */
const secret = new URLSearchParams(location.search).get('token');

const block = document.getElementById('qkv-recorded');
const file: { open: string; requests: Recorded[]; left_out: string[] } | null = block ? JSON.parse(block.textContent!) : null;
export const recorded = file?.requests ?? null;
export const leftOut = file?.left_out ?? [];
/** The address that the file opens with. */
export const opening = file?.open ?? '';

const canonical = (value: unknown): unknown =>
  value && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(
        Object.entries(value)
          .filter(([key, inner]) => inner !== undefined && key !== 'lang' && key !== 'view')
          .sort(([a], [b]) => (a < b ? -1 : 1))
          .map(([key, inner]) => [key, canonical(inner)]),
      )
    : Array.isArray(value)
      ? value.map(canonical)
      : value;

// The maps of a recorded answer are a session of the program that wrote the file. For parts of them that were not
// recorded, the engine is asked the same question first, and has a session of its own then.
const ofFile = 'file-';
const questions = new Map<string, { path: string; body: unknown }>();
const sessions = new Map<string, Promise<string>>();
function sessionOf(recorded: string): Promise<string> {
  const known = sessions.get(recorded);
  if (known) return known;
  const { path, body } = questions.get(recorded)!;
  const made = fromEngine<{ session: string }>(path, body).then((answer) => answer.session);
  made.catch(() => sessions.delete(recorded));
  sessions.set(recorded, made);
  return made;
}

async function replay<T>(path: string, body: unknown): Promise<T> {
  const asked = canonical(body ?? {}) as Record<string, unknown>;
  const session = typeof asked.session === 'string' && asked.session.startsWith(ofFile) ? asked.session.slice(ofFile.length) : undefined;
  if (session) asked.session = session;
  const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(canonical(b));
  const fits = (r: Recorded) => Object.entries(r.body).every(([key, value]) => same(asked[key], value)) && r.without.every((key) => asked[key] === undefined);
  const found = recorded?.find((r) => r.path === path && fits(r));
  // Once the engine runs, it knows of more models than those that were recorded.
  if (hasEngine && (!found || (path === '/models' && engineState.peek() === 'ready'))) return fromEngine(path, session ? { ...(body as object), session: await sessionOf(session) } : body);
  if (!found) throw { status: 404, error: 'recorded' } as Failure;
  const answer = found.answer as { session?: string };
  if (!answer.session) return answer as T;
  questions.set(answer.session, { path, body });
  return { ...answer, session: ofFile + answer.session } as T;
}

async function fromEngine<T>(path: string, body: unknown): Promise<T> {
  const { status, json } = await askEngine(body === undefined ? 'GET' : 'POST', path, body === undefined ? '' : JSON.stringify(body), lang.peek(), (body as { view?: string } | undefined)?.view);
  const answer = JSON.parse(json);
  if (status !== 200) throw { status, error: answer.error, hint: answer.hint } as Failure;
  return answer as T;
}

async function send<T>(path: string, body?: unknown, abort?: AbortSignal): Promise<T> {
  if (recorded || hasEngine) return replay<T>(path, body);
  let response: Response;
  try {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const query = text === undefined ? `${path.includes('?') ? '&' : '?'}lang=${lang.peek()}` : '';
    response = await fetch(`/api/v1${path}${query}`, {
      method: text === undefined ? 'GET' : 'POST',
      headers: { ...(text === undefined ? {} : { 'content-type': 'application/json' }), ...(secret ? { authorization: `Bearer ${secret}` } : {}) },
      body: text,
      signal: abort,
    });
  } catch (problem) {
    if ((problem as Error).name === 'AbortError') throw problem;
    throw { status: 0, error: 'offline' } as Failure;
  }
  const answer = await response.json().catch(() => ({ error: `HTTP ${response.status}` }));
  if (!response.ok) throw { status: response.status, error: answer.error ?? `HTTP ${response.status}`, hint: answer.hint } as Failure;
  return answer as T;
}

export const get = <T>(path: string) => send<T>(path);
export const post = <T>(path: string, body: object, view?: string) => send<T>(path, { lang: lang.peek(), view, ...body });

let views = 0;
export const tab = Math.random().toString(36).slice(2, 8); // several pages may look at once: views are per page

/**
 * An answer that follows its question. At most one request is under way; while it is, only the newest question waits,
 * so that a dragged point gets a steady stream of answers and never a queue. `patient` waits for typing to pause. A bench
 * that is not shown asks nothing.
 */
export function follow<T>(question: () => { path: string; body: object } | null, patient = 0): Signal<Answer<T>> & { view: string } {
  const view = `${tab}-${++views}`;
  const answer = Object.assign(signal<Answer<T>>({ data: null, busy: false, failure: null }), { view });
  let flying = false;
  let waiting: { path: string; body: object } | null = null;
  let asked = '';
  let timer = 0;
  const fly = async (next: { path: string; body: object }) => {
    flying = true;
    if (!answer.peek().busy) answer.value = { ...answer.peek(), busy: true };
    try {
      const data = await post<T>(next.path, next.body, view);
      answer.value = { data, busy: waiting !== null, failure: null };
    } catch (problem) {
      const failure = problem as Failure;
      if (failure.status !== 409) answer.value = { data: answer.peek().data, busy: waiting !== null, failure };
    }
    flying = false;
    if (waiting) {
      const newest = waiting;
      waiting = null;
      void fly(newest);
    }
  };
  const home = owner();
  effect(() => {
    if (bench.value !== home) return;
    const next = question();
    void lang.value; // sentences in answers follow the language
    const text = next ? JSON.stringify([next, lang.value]) : '';
    if (text === asked) return;
    asked = text;
    clearTimeout(timer);
    if (!next) {
      waiting = null;
      return;
    }
    const go = () => (flying ? (waiting = next) : void fly(next));
    if (patient && answer.peek().data) timer = window.setTimeout(go, patient);
    else go();
  });
  return answer;
}

/**
 * The server's event stream; the browser reconnects on its own. A tab in the background lets go of it: browsers allow six
 * connections to a server, and six open streams would leave none for questions.
 */
export function listen(handlers: Record<string, (data: any) => void>): () => void {
  if (recorded || hasEngine) return () => {};
  let stream: EventSource | null = null;
  const follow = () => {
    if (document.hidden === !stream) return;
    stream?.close();
    stream = document.hidden ? null : new EventSource(`/api/v1/events${secret ? `?token=${encodeURIComponent(secret)}` : ''}`);
    for (const [name, handle] of Object.entries(handlers)) stream?.addEventListener(name, (event) => handle(JSON.parse((event as MessageEvent).data)));
  };
  follow();
  document.addEventListener('visibilitychange', follow);
  return () => {
    document.removeEventListener('visibilitychange', follow);
    stream?.close();
  };
}
