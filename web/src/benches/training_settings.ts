// The settings of the training bench: the runs of a server have the first four, a training in the page the others.
import { computed } from '@preact/signals';
import { settings } from '../store';

export const s = settings('training', { run: '', other: '', show: 'loss', step: -1, kind: 'd2l-transformer', seed: 1, rate: 0, heads: 4, positions: 'sinusoidal', epochs: 0 });

// What the book has: a rate or a number of epochs of 0 in the address means these.
const book: Record<string, { rate: number; epochs: number }> = {
  'd2l-transformer': { rate: 0.005, epochs: 200 },
  'd2l-bahdanau': { rate: 0.005, epochs: 250 },
  'nadaraya-watson': { rate: 0.5, epochs: 5 },
};
export const kind = computed(() => (Object.hasOwn(book, s.kind.value) ? s.kind.value : 'd2l-transformer'));
export const rate = computed(() => (s.rate.value > 0 ? s.rate.value : book[kind.value].rate));
export const epochs = computed(() => (s.epochs.value >= 1 ? Math.round(s.epochs.value) : book[kind.value].epochs));
