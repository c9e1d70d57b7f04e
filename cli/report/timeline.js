// Trials in time: a row per slot, a bar per run.
'use strict';

// Which slot a run had is not recorded: each takes the first one that is free.
function runs_on_slots() {
  const runs = trials.flatMap((trial) =>
    trial.runs.map(([begin, end, outcome]) => ({begin, end, outcome, trial, slot: 0})));
  runs.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const free_from = [];
  for (const run of runs) {
    const free = free_from.findIndex((time) => time <= run.begin);
    run.slot = free < 0 ? free_from.length : free;
    free_from[run.slot] = run.end;
  }
  return {runs, slots: free_from.length};
}

function run_color(run, best) {
  if (run.trial === best) return 'best';
  if (['Failed', 'TimedOut', 'Hung', 'OutOfMemory'].includes(run.outcome)) return 'bad';
  if (run.outcome === 'Stopped' || run.outcome === 'Disrupted') return 'stopped';
  return run.outcome === 'Running' ? 'good' : 'accent';
}

// A dataset for each colour, and one for trials that are not selected.
function run_bars(points) {
  const best = best_of(objective);
  const bars = (color, choose) => ({make: () => points.filter(choose), grouped: false, borderSkipped: false,
    borderWidth: points.length > kMany ? 0 : 1, borderRadius: points.length > kMany ? 0 : 3, maxBarThickness: 16,
    minBarLength: 4,  // a short run of a long study
    ink: {backgroundColor: () => colors[color], borderColor: () => colors.panel}});
  const kinds = ['accent', 'stopped', 'bad', 'good', 'best'].map((color) =>
    bars(color, (point) => is_selected(point.trial) && run_color(point.run, best) === color));
  return [...kinds, bars('line', (point) => !is_selected(point.trial))];
}

// In two frames, as curves.
function* draw_timeline() {
  const section = document.getElementById('timeline');
  const {runs, slots} = runs_on_slots();
  section.querySelector('.plot').style.height = Math.min(62 + 24 * Math.max(slots, 2), 900) + 'px';
  const end = runs.reduce((latest, run) => Math.max(latest, run.end), 0);
  const unit = time_unit(end);
  const points = runs.map((run) => ({
    x: [run.begin / unit.size, run.end / unit.size],
    y: run.slot + 1,
    trial: run.trial,
    run,
  }));
  if (runs.length > kMany) yield;
  const scales = {
    x: scale_of({type: 'linear', min: 0, max: end / unit.size || 1}, unit.name),
    y: {type: 'linear', min: 0.5, max: slots + 0.5, offset: false, reverse: true, grid: {display: false},
      ticks: {precision: 0, includeBounds: false}},
  };
  const options = trial_options(scales, {indexAxis: 'y'});
  options.interaction = {mode: 'nearest', intersect: true};
  options.plugins.tooltip.callbacks.afterTitle = (items) => items[0]
    ? items[0].raw.run.outcome + ' after ' + duration_text(items[0].raw.run.end - items[0].raw.run.begin)
    : '';
  draw(section, runs.length > 0 && {type: 'bar', data: {datasets: run_bars(points)}, options}, 'Nothing ran yet.');
}
