// What the page and the engine's worker tell each other.
export interface PackedFile {
  path: string; // "/models/NAME/config.yaml"
  data: Uint8Array;
}
export type ToEngine =
  | { type: 'start'; wasm: ArrayBuffer; files?: PackedFile[]; catalogue?: string }
  | { type: 'put'; files: PackedFile[] } // more files; then the models are looked for again
  | { type: 'ask'; id: number; method: string; path: string; body: string; lang: 'en' | 'zh'; view?: string }
  | { type: 'train'; sentences: unknown[]; lang: 'en' | 'zh' } // after /train/start: slices until it is done
  | { type: 'pause'; paused: boolean };
export type FromEngine =
  | { type: 'ready' }
  | { type: 'failed'; reason: string } // "simd": the browser lacks what the engine needs
  | { type: 'answer'; id: number; status: number; json: string }
  | { type: 'event'; name: 'train' | 'train_look' | 'train_failed' | 'put' | 'token'; data: any }; // "put": { error?, hint? }; "token": { view, token }
