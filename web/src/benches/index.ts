// The benches, in the order of the chapter.
import type { ComponentType } from 'preact';
import { Regression } from './regression';
import { Translate } from './translate';

export interface BenchEntry {
  name: 'cues' | 'regression' | 'scores' | 'translate' | 'heads' | 'positions' | 'transformer' | 'language' | 'vision' | 'training' | 'compare';
  Bench: ComponentType;
  asks: string[]; // paths of the API that it cannot do without
}
export const benches: BenchEntry[] = [
  { name: 'regression', Bench: Regression, asks: ['/regress'] },
  { name: 'translate', Bench: Translate, asks: ['/translate'] },
];
