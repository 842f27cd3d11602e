// Two texts, the second with what changed marked: words that are new in it, and words that are gone.
export function Changed({ from, to }: { from: string; to: string }) {
  const [a, b] = [from.split(/\s+/).filter(Boolean), to.split(/\s+/).filter(Boolean)];
  // The longest common subsequence, from the end.
  const long = Array.from({ length: a.length + 1 }, () => new Array<number>(b.length + 1).fill(0));
  for (let i = a.length - 1; i >= 0; --i) {
    for (let j = b.length - 1; j >= 0; --j) long[i][j] = a[i] === b[j] ? long[i + 1][j + 1] + 1 : Math.max(long[i + 1][j], long[i][j + 1]);
  }
  const out = [];
  let [i, j] = [0, 0];
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      out.push(<span>{b[j]} </span>);
      ++i;
      ++j;
    } else if (j < b.length && (i >= a.length || long[i][j + 1] >= long[i + 1][j])) out.push(<ins>{b[j++]} </ins>);
    else out.push(<del>{a[i++]} </del>);
  }
  return <span class="changed">{out}</span>;
}
