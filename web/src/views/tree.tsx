// The beam as a tree: every hypothesis that the search kept, where it branched and where it ended.
import { fixed, word } from '../num';
import { t } from '../words';
import { textWidth } from './heat';

export interface TreeNode {
  id: number;
  parent: number | null;
  token: string;
  log_probability: number;
  finished?: boolean;
}

interface Placed extends TreeNode {
  x: number;
  y: number;
  depth: number;
  best: boolean;
}

/** Leaves one below the other, parents level with their first child, a column per step. */
function place(nodes: TreeNode[], best: string[]): { all: Placed[]; width: number; height: number } {
  const ids = new Set(nodes.map((node) => node.id));
  const children = new Map<number | null, TreeNode[]>();
  for (const node of nodes) {
    const parent = node.parent !== null && node.parent !== node.id && ids.has(node.parent) ? node.parent : null;
    children.set(parent, [...(children.get(parent) ?? []), node]);
  }
  const widths: number[] = [];
  const all: Placed[] = [];
  let line = 0;
  const walk = (node: TreeNode, depth: number, onBest: boolean): number => {
    widths[depth] = Math.max(widths[depth] ?? 0, textWidth(word(node.token)) + 26);
    const placed: Placed = { ...node, x: 0, y: 0, depth, best: onBest };
    all.push(placed);
    const start = /^<(bos|s)>$/.test(node.token) && depth === 0;
    const next = (child: TreeNode) => onBest && child.token === best[start || !rootless ? depth : depth + 1];
    const below = [...(children.get(node.id) ?? [])].sort((a, b) => Number(next(b)) - Number(next(a)) || b.log_probability - a.log_probability);
    let taken = false;
    const ys = below.map((child) => {
      const follows = !taken && next(child);
      taken ||= follows;
      return walk(child, depth + 1, follows);
    });
    placed.y = ys.length ? ys[0] : line++;
    return placed.y;
  };
  const roots = children.get(null) ?? [];
  const rootless = !(roots.length === 1 && (/^<(bos|s)>$/.test(roots[0].token) || roots[0].token === ''));
  for (const root of [...roots].sort((a, b) => Number(b.token === best[0]) - Number(a.token === best[0]))) {
    walk(root, 0, !rootless || root.token === best[0]);
  }
  const starts = widths.map((_, depth) => widths.slice(0, depth).reduce((a, b) => a + b, 0));
  for (const node of all) {
    node.x = 4 + starts[node.depth];
    node.y = 20 + node.y * 25;
  }
  return { all, width: 24 + widths.reduce((a, b) => a + b, 0), height: 20 + line * 25 };
}

export function BeamTree({ nodes, best }: { nodes: TreeNode[]; best: string[] }) {
  const { all, width, height } = place(nodes, best);
  const by = new Map(all.map((node) => [node.id, node]));
  return (
    <div class="scroll tree" tabIndex={0} role="group" aria-label={t('treeTitle')}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={t('treeLabel', { count: all.length })}>
        {all.map((node) => {
          const parent = node.parent === null ? undefined : by.get(node.parent);
          if (!parent || parent === node) return null;
          const x1 = parent.x + textWidth(word(parent.token)) + 6;
          const x2 = node.x - 4;
          const middle = Math.max(x1 + 4, x2 - 12);
          return <path class={node.best ? 'best' : ''} d={`M${x1},${parent.y}H${middle - 6}C${middle + 4},${parent.y} ${middle - 2},${node.y} ${x2},${node.y}`} />;
        })}
        {all.map((node) => (
          <g class={node.best ? 'best' : ''}>
            <title>{`${word(node.token)}: log p = ${fixed(node.log_probability)}`}</title>
            <text x={node.x} y={node.y + 4}>
              {word(node.token)}
              {node.finished ? ' ●' : ''}
            </text>
          </g>
        ))}
      </svg>
    </div>
  );
}
