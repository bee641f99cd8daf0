// Where the time of an operation goes: a bar for each measurement, in its stages.

const STAGE_WORDS = { local: 'here', remote: 'far end' };
const BARS = { width: 480, label: 16, bar: 20, inner: 7, gap: 12 };

const stageFact = (stage) => [
  `${stage.name}, ${STAGE_WORDS[stage.side]}`,
  `${percent(stage.share, 1)}: mean ${time(stage.mean_ns)}, p50 ${time(stage.p50_ns)}, p99 ${time(stage.p99_ns)} ` +
    `of ${count(stage.count)}`,
];

// Stages of this side fill the bar. Those of the far end are within the one before them: a thin bar in its middle.
function stageParts(stages, colorOf) {
  const parts = [];
  let at = 0;
  for (const stage of stages.filter((one) => one.side === 'local')) {
    const next = stages.slice(stages.indexOf(stage) + 1);
    const end = next.findIndex((one) => one.side === 'local');
    const within = next.slice(0, end < 0 ? next.length : end);
    parts.push({ stage, from: at, to: at + stage.share, color: colorOf(stage) });
    const inner = Math.min(
      stage.share,
      within.reduce((sum, one) => sum + one.share, 0),
    );
    let place = at + (stage.share - inner) / 2;
    for (const one of within) {
      const to = Math.min(at + stage.share, place + one.share);
      parts.push({ stage: one, from: place, to, color: colorOf(one), inner: true });
      place = to;
    }
    at += stage.share;
  }
  return parts;
}

function stageChart(group) {
  const members = group.filter((m) => m.stages.some((stage) => stage.side === 'local'));
  if (!members.length) return null;
  const keyOf = (stage) => `${stage.side} ${stage.name}`;
  const keys = [...new Map(members.flatMap((m) => m.stages).map((stage) => [keyOf(stage), stage])).values()];
  const colorOf = (stage) => COLORS[keys.findIndex((key) => keyOf(key) === keyOf(stage)) % COLORS.length];
  const { width, label, bar, inner, gap } = BARS;
  const step = label + bar + inner + gap;
  const svg = shape('svg', {
    class: 'plot stages',
    viewBox: `0 0 ${width} ${members.length * step}`,
    role: 'img',
    'aria-label': 'Where the time goes',
  });
  members.forEach((m, row) => {
    const top = row * step;
    svg.append(shape('text', { class: 'tick', x: 0, y: top + 12 }, differences(m, members, null)));
    svg.append(shape('text', { x: width, y: top + 12, 'text-anchor': 'end' }, `mean ${time(latency(m, 'mean'))}`));
    for (const { stage, from, to, color, inner: thin } of stageParts(m.stages, colorOf)) {
      const place = { x: from * width, y: top + label + (thin ? bar + 1 : 0), width: Math.max(0, to - from) * width };
      svg.append(
        shape(
          'rect',
          { class: thin ? 'stage inner' : 'stage', ...place, height: thin ? inner - 1 : bar, fill: color },
          shape('title', null, stageFact(stage).join('\n')),
        ),
      );
      if (thin || to - from < 0.1) continue;
      const middle = { x: ((from + to) / 2) * width, y: top + label + 14.5, 'text-anchor': 'middle' };
      svg.append(shape('text', { class: 'share', ...middle }, percent(stage.share)));
    }
  });
  const legend = keys.map((stage) =>
    element(
      'span',
      { class: 'key' },
      element('span', { class: 'box', style: `background: ${colorOf(stage)}` }),
      stage.side === 'local' ? stage.name : `${stage.name}, ${STAGE_WORDS[stage.side]}`,
    ),
  );
  const keyed = element('div', { class: 'legend' }, ...legend);
  return drawing('Where the time goes', 'thin: of that, at the far end', keyed, svg);
}
