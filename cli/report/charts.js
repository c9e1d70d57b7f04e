// What all charts of the page share. A dataset may say how it is made (`make`) and by which colours
// (`ink`): then a new theme or selection only renews it. Each chart is drawn by a function of its
// section (results.js, curves.js ...); drawn again it stays the same chart with other data.
'use strict';

/** @typedef {Object<string, any>} Dataset  of Chart.js, with make() and ink of our own */

/** @type {Map<Element, any>} */
const drawn = new Map();  // an element with class `plot` to its chart
let objective = 0;        // the one that is shown
/** @type {Object<string, string>} */
let colors = {};          // of the style sheet in force

const kMany = 500;        // trials above which marks are small

function read_colors() {
  const style = getComputedStyle(document.documentElement);
  const names = ['text', 'quiet', 'line', 'accent', 'band', 'best', 'bad', 'stopped', 'panel',
    'worst-line', 'good'];
  colors = Object.fromEntries(names.map((name) => [name, style.getPropertyValue('--' + name).trim()]));
  Chart.defaults.color = colors.quiet;
  Chart.defaults.borderColor = colors.line;
  Chart.defaults.font.family = style.fontFamily || 'sans-serif';
  Chart.defaults.font.size = 11.5;
  Chart.defaults.animation = false;
  Chart.defaults.maintainAspectRatio = false;
}

// From faint (0) to the accent (1).
function shade(standing) {
  const parse = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  const from = parse(colors['worst-line']);
  const to = parse(colors.accent);
  return 'rgb(' + from.map((low, i) => Math.round(low + (to[i] - low) * standing ** 2)).join(',') + ')';
}

// How trials of a kind are marked: by colour and by shape.
const kMarks = [
  {kinds: ['Completed'], color: 'accent', shape: 'circle', text: 'completed'},
  {kinds: ['Stopped'], color: 'stopped', shape: 'crossRot', text: 'stopped early'},
  {kinds: ['Failed', 'Infeasible'], color: 'bad', shape: 'rectRot', text: 'failed or infeasible'},
  {kinds: ['Running', 'Pending', 'Paused'], color: 'good', shape: 'rect', text: 'not ended'},
];

/** @param {TrialRow} trial */
function mark_of(trial) {
  const kind = kind_of(trial);
  return kMarks.find((mark) => mark.kinds.includes(kind)) ?? kMarks[0];
}

// Makes a chart's data and colours from the selection and the theme in force.
function fill_in(datasets) {
  for (const set of datasets) {
    if (set.make) set.data = set.make();
    for (const [option, color] of Object.entries(set.ink ?? {})) set[option] = color();
  }
}

// The chart of a section shows another selection or theme.
function renew_chart(section) {
  const chart = drawn.get(section.querySelector('.plot'));
  if (!chart) return;
  fill_in(chart.data.datasets);
  chart.update('none');
}

// All charts show another theme: for pages without views.
function renew_charts() {
  for (const chart of drawn.values()) {
    fill_in(chart.data.datasets);
    chart.update('none');
  }
}

// Gives a chart other data where its datasets are of the same kinds.
function update_chart(chart, {data, options}) {
  const same = chart.data.datasets.length === data.datasets.length &&
    chart.data.datasets.every((set, i) => set.type === data.datasets[i].type);
  if (!same) return false;
  chart.data.labels = data.labels;
  data.datasets.forEach((set, i) => Object.assign(chart.data.datasets[i], set));
  chart.options = options;
  chart.update('none');
  return true;
}

function drop_charts(root) {
  for (const [plot, chart] of drawn) {
    if (!root.contains(plot)) continue;
    chart.destroy();
    drawn.delete(plot);
  }
}

// What a screen reader says of a chart: the title, the sentence above it, and `data-says`.
/** @param {HTMLCanvasElement} canvas */
function describe(canvas, section) {
  const texts = [...section.querySelectorAll('h2, h3, p.says')].map((each) => each.textContent.trim());
  canvas.setAttribute('role', 'img');
  canvas.setAttribute('aria-label', 'Chart: ' + [...texts, section.dataset.says].filter(Boolean).join('. '));
}

// Puts a chart into the section, or says why there is none.
function draw(section, config, why_empty) {
  const plot = section.querySelector('.plot');
  plot.classList.toggle('empty', !config);
  section.classList.toggle('without-chart', !config);
  if (!config) {
    drop_charts(section);
    plot.textContent = why_empty;
    return;
  }
  fill_in(config.data.datasets);
  if (drawn.has(plot) && update_chart(drawn.get(plot), config)) {
    describe(plot.querySelector('canvas'), section);
    return;
  }
  drop_charts(plot);
  let canvas = plot.querySelector('canvas');
  if (!canvas) {
    plot.textContent = '';
    canvas = plot.appendChild(document.createElement('canvas'));
  }
  drawn.set(plot, new Chart(canvas, config));
  describe(canvas, section);
}

// Logarithmic axes get a label at powers of ten, and between them where there is room.
function log_label(value, _index, ticks) {
  const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  const few = ticks.length < 20;
  const shown = Math.abs(mantissa - 1) < 1e-6 || (few && [2, 5].includes(Math.round(mantissa)));
  return shown ? number_text(value) : '';
}

/** @returns {Object<string, any>} */
function scale_of(axis, title, more = {}) {
  /** @type {Object<string, any>} */
  const ticks = {maxRotation: 0, autoSkipPadding: 14};
  if (axis.labels) {
    ticks.stepSize = 1;
    ticks.callback = (value) => short_text(axis.labels[value] ?? '', 12);
    ticks.autoSkip = axis.labels.length > 8;
  } else if (axis.type === 'logarithmic') {
    ticks.callback = log_label;
  }
  return {
    type: axis.type,
    min: axis.min,
    max: axis.max,
    title: {display: Boolean(title), text: title},
    grid: {color: () => colors.line, drawBorder: false},
    // An end that is no round number would crowd the tick beside it.
    ticks: {includeBounds: false, ...ticks},
    afterBuildTicks: axis.labels
      ? (scale) => (scale.ticks = axis.labels.map((_, i) => ({value: i})))
      : undefined,
    ...more,
  };
}

function metric() {
  return study.objectives[objective].metric;
}

// A line that is no trial's.
/** @returns {Dataset} */
function plain_line(points, color, more = {}) {
  return {type: 'line', data: points, borderWidth: 1.5, pointRadius: 0, pointHitRadius: 0,
    ink: {borderColor: () => colors[color], pointBackgroundColor: () => colors[color]}, ...more};
}
