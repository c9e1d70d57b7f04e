// Parallel coordinates, on a canvas of our own: an axis a parameter and one for the objective. A
// range on an axis chooses trials.
'use strict';

const kGap = 128;                     // between axes, at least
const kMostAxes = 24;
const chosen_ranges = new Map();      // axis name to [low, high], shares of its length from below
let parallel_axes = [];

function parallel_parameters() {
  const rows = data.insights[objective].importance ?? [];
  const total = new Map(rows.map((row) => [row.parameter, row.total]));
  if (study.parameters.length < kMostAxes) return study.parameters;
  return [...study.parameters].sort((a, b) => (total.get(b.name) ?? 0) - (total.get(a.name) ?? 0))
    .slice(0, kMostAxes - 1);
}

function make_axes() {
  const axes = parallel_parameters().map((parameter) => {
    const axis = parameter_axis(parameter);
    return {name: parameter.name, labels: axis.labels, low: axis.low, high: axis.high,
      share: (trial) => has_parameter(trial, parameter.name)
        ? axis.share(trial.parameters[parameter.name]) : NaN};
  });
  const values = trials.filter((trial) => has_value(trial, objective)).map((t) => t.values[objective]);
  const scale = value_axis(values, objective);
  const log = scale.type === 'logarithmic';
  axes.push({name: metric(), low: number_text(scale.min), high: number_text(scale.max),
    share: (trial) => share_between(scale.clamp(trial.values[objective]), scale.min, scale.max, log)});
  return axes;
}

// Whether a trial lies in every range that was chosen. One that lacks the parameter does not.
function is_chosen(trial) {
  return parallel_axes.every((axis) => {
    const range = chosen_ranges.get(axis.name);
    if (!range) return true;
    const share = axis.share(trial);
    return share >= range[0] && share <= range[1];
  });
}

function parallel_layout(canvas) {
  const box = canvas.parentElement;
  const width = Math.max(box.clientWidth, 120 + kGap * (parallel_axes.length - 1));
  const top = 34;
  const bottom = 300;
  const left = 60;
  const step = parallel_axes.length > 1 ? (width - left - 100) / (parallel_axes.length - 1) : 0;
  return {width, height: 330, top, bottom, x: (i) => left + step * i,
    y: (share) => bottom - (bottom - top) * share};
}

function draw_parallel() {
  parallel_axes = make_axes();
  const canvas = document.querySelector('#parallel canvas');
  const layout = parallel_layout(canvas);
  const ratio = window.devicePixelRatio || 1;
  canvas.width = layout.width * ratio;
  canvas.height = layout.height * ratio;
  canvas.style.width = layout.width + 'px';
  canvas.style.height = layout.height + 'px';
  const context = canvas.getContext('2d');
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, layout.width, layout.height);
  draw_lines(context, layout);
  parallel_axes.forEach((axis, i) => draw_axis(context, layout, axis, i));
}

function draw_lines(context, layout) {
  const standings = standings_of(objective);
  const best = best_of(objective);
  const ordered = trials.filter((trial) => has_value(trial, objective))
    .sort((a, b) => standings.get(a.name) - standings.get(b.name));
  const many = ordered.length > 300;
  for (const trial of ordered) {
    const chosen = is_chosen(trial);
    const standing = standings.get(trial.name);
    context.globalAlpha = chosen ? (many ? 0.06 + 0.6 * standing ** 4 : 0.85) : 0.12;
    context.strokeStyle = trial === best && chosen ? colors.best
      : chosen ? shade(standing) : colors['worst-line'];
    context.lineWidth = trial === best && chosen ? 2.8 : many ? 0.8 : 1.3;
    draw_line(context, layout, trial);
  }
  context.globalAlpha = 1;
}

// Where the trial lacks a parameter, the line has a gap.
function draw_line(context, layout, trial) {
  context.beginPath();
  let drawing = false;
  parallel_axes.forEach((axis, i) => {
    const share = axis.share(trial);
    if (Number.isNaN(share)) {
      drawing = false;
      return;
    }
    const spot = axis.labels ? share + spread(trial.index, 0.5 / axis.labels.length) : share;
    if (drawing) context.lineTo(layout.x(i), layout.y(spot));
    else context.moveTo(layout.x(i), layout.y(spot));
    drawing = true;
  });
  context.stroke();
}

function draw_axis(context, layout, axis, i) {
  const x = layout.x(i);
  const font = Chart.defaults.font.family;
  context.strokeStyle = colors.quiet;
  context.lineWidth = 1;
  context.beginPath();
  context.moveTo(x, layout.top);
  context.lineTo(x, layout.bottom);
  context.stroke();
  const range = chosen_ranges.get(axis.name);
  if (range) {
    context.fillStyle = colors.band;
    context.strokeStyle = colors.accent;
    const height = layout.y(range[0]) - layout.y(range[1]);
    context.fillRect(x - 8, layout.y(range[1]), 16, height);
    context.strokeRect(x - 8, layout.y(range[1]), 16, height);
  }
  context.textAlign = 'center';
  context.fillStyle = colors.text;
  context.font = '600 12px ' + font;
  const last = i === parallel_axes.length - 1;
  write_text(context, axis.name, x, layout.top - 18, last ? colors.best : colors.text, kGap - 10);
  context.textAlign = 'left';
  context.font = '11px ' + font;
  if (axis.labels) {
    const every = Math.ceil(axis.labels.length / 12);
    axis.labels.forEach((label, at) => {
      const y = layout.y((at + 0.5) / axis.labels.length);
      if (at % every === 0) write_text(context, label, x + 7, y + 4, colors.quiet, kGap - 20);
    });
    return;
  }
  write_text(context, axis.high, x + 7, layout.top + 4, colors.quiet, kGap - 20);
  write_text(context, axis.low, x + 7, layout.bottom + 4, colors.quiet, kGap - 20);
}

// With the panel's colour around it, so that it can be read over lines.
function write_text(context, text, x, y, color, most) {
  let shown = text;
  while (shown.length > 3 && context.measureText(shown).width > most) {
    shown = shown.slice(0, -2).replace(/…$/, '') + '…';
  }
  context.lineJoin = 'round';
  context.lineWidth = 3;
  context.strokeStyle = colors.panel;
  context.strokeText(shown, x, y);
  context.fillStyle = color;
  context.fillText(shown, x, y);
}

// Dragging along an axis chooses a range, a click on it lets go.
function watch_parallel() {
  const canvas = document.querySelector('#parallel canvas');
  let dragged = null;  // {axis, from}
  const spot = (event) => {
    const box = canvas.getBoundingClientRect();
    const layout = parallel_layout(canvas);
    const x = event.clientX - box.left;
    const at = parallel_axes.findIndex((_, i) => Math.abs(layout.x(i) - x) < 18);
    const share = (layout.bottom - (event.clientY - box.top)) / (layout.bottom - layout.top);
    return {axis: parallel_axes[at], share: Math.min(Math.max(share, 0), 1)};
  };
  const show = () => {
    draw_parallel();
    draw_table();
  };
  canvas.addEventListener('pointerdown', (event) => {
    const {axis, share} = spot(event);
    if (!axis) return;
    dragged = {axis, from: share};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener('pointermove', (event) => {
    const here = spot(event);
    canvas.style.cursor = here.axis || dragged ? 'ns-resize' : 'default';
    if (!dragged) return;
    const ends = [dragged.from, here.share].sort((a, b) => a - b);
    chosen_ranges.set(dragged.axis.name, ends);
    draw_parallel();
  });
  canvas.addEventListener('pointerup', (event) => {
    if (!dragged) return;
    if (Math.abs(spot(event).share - dragged.from) < 0.01) chosen_ranges.delete(dragged.axis.name);
    dragged = null;
    show();
  });
}
