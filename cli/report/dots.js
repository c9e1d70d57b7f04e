// Charts whose points are trials: their marks, tooltips, and arrows for values beyond an axis.
'use strict';

// Tooltip lines of a point that carries its trial.
function trial_lines(context) {
  const trial = context.raw.trial;
  if (!trial) return '';
  const lines = study.objectives.map((each, i) => each.metric + ' ' + number_text(trial.values[i]));
  const parameters = parameters_text(trial);
  const more = parameters.length > 12 ? ['and ' + (parameters.length - 12) + ' more'] : [];
  return [...lines, ...parameters.slice(0, 12), ...more];
}

/** @returns {Object<string, any>} */
function trial_options(scales, more = {}) {
  return {
    scales,
    onClick: (_event, elements, chart) => {
      const hit = elements.map((e) => chart.data.datasets[e.datasetIndex].data[e.index].trial);
      if (hit[0]) select_trial(hit[0].name);
    },
    interaction: {mode: 'nearest', intersect: true, axis: 'xy'},
    plugins: {
      legend: {display: false},
      tooltip: {
        displayColors: false,
        filter: (item, index) => index === 0 && Boolean(item.raw.trial),
        callbacks: {
          title: (items) => (items[0] ? items[0].raw.trial.name + ' · ' + kind_of(items[0].raw.trial) : ''),
          label: trial_lines,
        },
      },
    },
    ...more,
  };
}

// Datasets of points, one a trial: one for each kind, one for points beyond the axes (arrows at the
// edge), and a faint one for trials that are not selected.
/**
 * @param {{x: number, y: number, trial: TrialRow, turn?: number}[]} points
 * @param {{radius?: number, order?: number}} how
 * @returns {Dataset[]}
 */
function dots(points, {radius, order = 3} = {}) {
  const size = radius ?? (points.length > kMany ? 2 : 3.5);
  const base = {type: 'scatter', clip: 6, pointHoverRadius: 6, order};
  const line_width = {crossRot: 1.4};
  const kinds = kMarks.map((mark) => ({
    ...base,
    make: () => points.filter((p) => !p.turn && mark_of(p.trial) === mark && is_selected(p.trial)),
    pointStyle: mark.shape,
    pointRadius: mark.shape === 'crossRot' ? size * 0.9 : size,
    pointBorderWidth: line_width[mark.shape] ?? 0,
    ink: {pointBackgroundColor: () => colors[mark.color], pointBorderColor: () => colors[mark.color]},
  }));
  const beyond = {
    ...base,
    make: () => points.filter((p) => p.turn && is_selected(p.trial)),
    pointStyle: 'triangle',
    pointRadius: size + 1,
    pointRotation: (context) => (context.raw?.turn ?? 0) % 360,
    pointBorderWidth: 0,
    ink: {pointBackgroundColor: () => colors.stopped},
  };
  const faint = {
    ...base,
    make: () => points.filter((p) => !is_selected(p.trial)),
    order: order + 10,
    pointRadius: size * 0.7,
    pointBorderWidth: 0,
    ink: {pointBackgroundColor: () => colors.line},
  };
  return [...kinds, beyond, faint];
}

// The direction of the arrow of a value beyond an axis; 0 for values on it. An arrow up has 360.
function turn_of(value, axis, vertical) {
  if (axis.clamp(value) === value || value === null) return 0;
  const up = value > axis.clamp(value);
  return vertical ? (up ? 360 : 180) : (up ? 90 : 270);
}

// "9 beyond 1.5", for values of axes; '' where none is.
function beyond_text(axes) {
  return axes.map(({axis, values, name}) => {
    const out = values.filter((value) => value !== null && axis.clamp(value) !== value);
    if (out.length === 0) return '';
    return out.length + ' beyond ' + (name ? name + ' ' : '') + number_text(axis.clamp(out[0])) +
      ', drawn as arrows at the edge.';
  }).filter(Boolean).join(' ');
}

function say(section, text) {
  section.querySelector('.beyond').textContent = text;
}

// Whether a goal can be shown without pressing all else together.
function is_near(goal, values) {
  if (goal === null || values.length === 0) return false;
  const [low, high] = extent(values);
  return goal >= low - (high - low) && goal <= high + (high - low);
}

// Dots of different trials at the same choice would cover each other. The place within a choice
// follows from the trial's number.
function spread(index, room) {
  return ((((index * 0.618034) % 1) + 1) % 1 - 0.5) * room;
}
