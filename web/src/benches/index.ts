// The benches, in the order of the chapter.
import type { ComponentType } from 'preact';
import { Compare } from './compare';
import { Cues } from './cues';
import { HeadsBench } from './heads';
import { LanguageBench } from './language';
import { Positions } from './positions';
import { Regression } from './regression';
import { Scores } from './scores';
import { TrainingBench } from './training';
import { TransformerBench } from './transformer';
import { Vision } from './vision';
import { Translate } from './translate';

export interface BenchEntry {
  name: 'cues' | 'regression' | 'scores' | 'translate' | 'heads' | 'positions' | 'transformer' | 'language' | 'vision' | 'training' | 'compare';
  Bench: ComponentType;
  asks: string[]; // paths of the API that it cannot do without
}
export const benches: BenchEntry[] = [
  { name: 'cues', Bench: Cues, asks: ['/cues'] },
  { name: 'regression', Bench: Regression, asks: ['/regress'] },
  { name: 'scores', Bench: Scores, asks: ['/attend'] },
  { name: 'translate', Bench: Translate, asks: ['/translate'] },
  { name: 'heads', Bench: HeadsBench, asks: ['/heads', '/maps'] },
  { name: 'positions', Bench: Positions, asks: ['/positions'] },
  { name: 'transformer', Bench: TransformerBench, asks: ['/blocks'] },
  { name: 'language', Bench: LanguageBench, asks: ['/next'] },
  { name: 'vision', Bench: Vision, asks: ['/classify'] },
  { name: 'training', Bench: TrainingBench, asks: [] },
  { name: 'compare', Bench: Compare, asks: ['/compare'] },
];
