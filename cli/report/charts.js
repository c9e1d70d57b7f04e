// The charts that Chart.js draws. Each function draws a new one into its section; charts of the
// state before are gone by then (page.js).
'use strict';

const drawn = [];   // charts on the page
let objective = 0;  // the one that is shown
let colors = {};    // of the style sheet in force

const kBuckets = 8;  // shades of lines, from the worst to the best

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

function kind_color(trial) {
  const kind = kind_of(trial);
  if (kind === 'Completed') return colors.accent;
  if (kind === 'Failed' || kind === 'Infeasible') return colors.bad;
  return kind === 'Stopped' ? colors.stopped : colors.good;
}

// Puts a chart into the section, or says why there is none.
function draw(section, config, why_empty) {
  const plot = section.querySelector('.plot');
  plot.classList.toggle('empty', !config);
  if (!config) {
    plot.textContent = why_empty;
    return null;
  }
  let canvas = plot.querySelector('canvas');
  if (!canvas) {
    plot.textContent = '';
    canvas = plot.appendChild(document.createElement('canvas'));
  }
  const chart = new Chart(canvas, config);
  drawn.push(chart);
  return chart;
}

// Logarithmic axes get a label at powers of ten, and between them where there is room.
function log_label(value, index, ticks) {
  const mantissa = value / 10 ** Math.floor(Math.log10(value) + 1e-9);
  const few = ticks.length < 20;
  const shown = Math.abs(mantissa - 1) < 1e-6 || (few && [2, 5].includes(Math.round(mantissa)));
  return shown ? number_text(value) : '';
}

function scale_of(axis, title, more = {}) {
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
    grid: {color: colors.line, drawBorder: false},
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

// Tooltip lines of a point that carries its trial.
function trial_lines(context) {
  const trial = context.raw.trial;
  if (!trial) return '';
  const lines = study.objectives.map((each, i) => each.metric + ' ' + number_text(trial.values[i]));
  const parameters = parameters_text(trial);
  const more = parameters.length > 12 ? ['and ' + (parameters.length - 12) + ' more'] : [];
  return [...lines, ...parameters.slice(0, 12), ...more];
}

function trial_options(scales, more = {}) {
  return {
    scales,
    onClick: (event, elements, chart) => {
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

// Points, one a trial.
function dots(points, more = {}) {
  return {
    type: 'scatter',
    data: points,
    clip: 6,
    pointRadius: points.length > 500 ? 2 : 3.5,
    pointHoverRadius: 6,
    pointBackgroundColor: points.map((point) => point.color ?? kind_color(point.trial)),
    pointBorderWidth: 0,
    ...more,
  };
}

// Whether a goal can be shown without pressing all else together.
function is_near(goal, values) {
  if (goal === null || values.length === 0) return false;
  const [low, high] = extent(values);
  return goal >= low - (high - low) && goal <= high + (high - low);
}

function draw_best_so_far() {
  const results = results_of(objective);
  const values = results.map((trial) => trial.values[objective]);
  const goal = study.objectives[objective].goal;
  const axis = value_axis(is_near(goal, values) ? [...values, goal] : values, objective);
  const steps = [];
  let best = null;
  results.forEach((trial, i) => {
    const value = trial.values[objective];
    const leads = best === null || is_better(objective, value, best);
    if (leads && !trial.repeats) best = value;
    steps.push({x: i + 1, y: axis.clamp(best)});
  });
  const points = results.map((trial, i) => ({x: i + 1, y: axis.clamp(trial.values[objective]), trial}));
  const datasets = [
    {type: 'line', data: steps, stepped: 'before', borderColor: colors.best, borderWidth: 2.5,
      pointRadius: steps.length === 1 ? 5 : 0, pointHitRadius: 0},
    dots(points),
  ];
  if (is_near(goal, values)) {
    datasets.push({type: 'line', data: [{x: 0, y: goal}, {x: results.length + 1, y: goal}],
      borderColor: colors.good, borderWidth: 1.5, borderDash: [6, 5], pointRadius: 0,
      pointHitRadius: 0});
  }
  const x = {type: 'linear', min: results.length > 1 ? 1 : 0, max: Math.max(results.length, 2)};
  const scales = {x: scale_of(x, 'results'), y: scale_of(axis, metric())};
  scales.x.ticks.precision = 0;
  draw(document.getElementById('best-so-far'),
    results.length > 0 && {data: {datasets}, options: trial_options(scales)}, 'No result yet.');
}

function curve_points(trial, axis) {
  return trial.curve.map((point) => ({
    x: point[0],
    y: axis.clamp(point[1 + objective]),
    trial,
  }));
}

// Curves of one shade are one line with gaps, so that thousands are drawn at once.
function draw_curves() {
  const section = document.getElementById('curves');
  const shown = trials.filter((trial) => trial.curve.some((point) => point[1 + objective] !== null));
  section.hidden = study.maxStep <= 1 && shown.every((trial) => trial.curve.length < 2);
  if (section.hidden) return;
  const axis = value_axis(shown.flatMap((trial) => trial.curve.map((p) => p[1 + objective])), objective);
  const standings = standings_of(objective);
  const best = best_of(objective);
  const buckets = Array.from({length: kBuckets}, () => []);
  const stops = [];
  for (const trial of shown) {
    if (trial === best) continue;
    const bucket = Math.floor((standings.get(trial.name) ?? 0) * (kBuckets - 1));
    const points = curve_points(trial, axis);
    buckets[bucket].push(...points, {x: NaN, y: NaN});
    if (trial.phase === 'Stopped') stops.push(points[points.length - 1]);
  }
  const line = (points, color, width, order) => ({type: 'line', data: points, borderColor: color,
    borderWidth: width, order, pointRadius: 0, pointHitRadius: 6, spanGaps: false});
  const single = shown.every((trial) => trial.curve.length < 2);
  const datasets = buckets.map((points, i) =>
    line(points, shade(i / (kBuckets - 1)), shown.length > 300 ? 0.8 : 1.3, 20 - i));
  if (best) {
    const bold = line(curve_points(best, axis), colors.best, 2.8, 1);
    datasets.push({...bold, pointRadius: single ? 4 : 0});
  }
  datasets.push({...dots(stops), pointStyle: 'crossRot', pointBorderWidth: 1.3, order: 2,
    pointBorderColor: colors.stopped, pointRadius: shown.length > 300 ? 2 : 3.5});
  const x = {type: 'linear', min: 0, max: study.maxStep};
  const scales = {x: scale_of(x, study.unit), y: scale_of(axis, metric())};
  scales.x.ticks.precision = 0;
  const options = trial_options(scales, {parsing: false, normalized: true});
  options.plugins.tooltip.callbacks.afterTitle = (items) =>
    items[0] ? study.unit + ' ' + items[0].raw.x : '';
  draw(section, shown.length > 0 && {data: {datasets}, options}, 'No trial has reported yet.');
}

// Bars for what a parameter does alone and together with others, whiskers between trees.
function draw_importance() {
  const section = document.getElementById('importance');
  const insight = data.insights[objective];
  const note = document.getElementById('importance-note');
  const rows = [...(insight.importance ?? [])].sort((a, b) => b.total - a.total).slice(0, 20);
  const any = rows.some((row) => row.total > 0);
  note.textContent = insight.why ? '' : 'Share of the variance of ' + metric() +
    ' that a parameter explains: alone (solid), with others (pale). A forest over ' +
    insight.trials + ' trials' + quality_text(insight.quality);
  document.getElementById('pairs').textContent = (insight.pairs ?? []).slice(0, 4).map((pair) =>
    pair.first + ' × ' + pair.second + ' ' + percent_text(pair.share)).join(' · ');
  section.querySelector('.plot').style.height = Math.max(120, 54 + 30 * rows.length) + 'px';
  const together = rows.map((row) => Math.max(row.total - row.main, 0));
  const bars = {barThickness: 15, stack: 'shares'};
  const config = {
    type: 'bar',
    data: {
      labels: rows.map((row) => row.parameter),
      datasets: [
        {data: rows.map((row) => row.main), backgroundColor: colors.accent, ...bars},
        {data: together, backgroundColor: colors.band, ...bars},
      ],
    },
    options: {
      indexAxis: 'y',
      scales: {
        x: {stacked: true, min: 0, max: 1, grid: {color: colors.line, drawBorder: false},
          ticks: {callback: (value) => percent_text(value)}},
        y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false, color: colors.text}},
      },
      plugins: {
        legend: {display: false},
        tooltip: {displayColors: false, callbacks: {label: (item) => {
          const row = rows[item.dataIndex];
          return ['alone ' + percent_text(row.main), 'in all ' + percent_text(row.total) + ' ± ' +
            percent_text(row.deviation)];
        }}},
      },
    },
    plugins: [whiskers(rows)],
  };
  draw(section, any && config, insight.why ? sentence(insight.why) : 'All values are the same.');
}

function quality_text(quality) {
  if (quality <= 0) return '; it explains nothing of trials it has not seen, so this is a guess.';
  return '; it explains ' + percent_text(quality) + ' of trials it has not seen.';
}

function whiskers(rows) {
  return {
    id: 'whiskers',
    afterDatasetsDraw(chart) {
      const context = chart.ctx;
      context.save();
      context.strokeStyle = colors.quiet;
      context.lineWidth = 1.2;
      rows.forEach((row, i) => {
        const y = chart.scales.y.getPixelForValue(i);
        const ends = [row.total - row.deviation, row.total + row.deviation].map((share) =>
          chart.scales.x.getPixelForValue(Math.min(Math.max(share, 0), 1)));
        context.beginPath();
        context.moveTo(ends[0], y);
        context.lineTo(ends[1], y);
        context.stroke();
      });
      context.restore();
    },
  };
}

// Dots of different trials at the same choice would cover each other. The place within a choice
// follows from the trial's number.
function spread(index, room) {
  return ((((index * 0.618034) % 1) + 1) % 1 - 0.5) * room;
}

function dependence_datasets(parameter, axis, values) {
  const found = own(data.insights[objective].dependence, parameter.name);
  if (!found) return [];
  const at = (i, shift) => ({
    x: axis.place(found.values[i]),
    y: values.clamp(found.means[i] + shift * found.deviations[i]),
  });
  const line = (shift, more) => ({type: 'line', data: found.values.map((_, i) => at(i, shift)),
    pointRadius: 0, pointHitRadius: 0, borderWidth: 0, tension: 0.25, order: 5, ...more});
  if (axis.labels) {
    const bar = found.values.map((_, i) => [at(i, -1), at(i, 1)]).flatMap(([low, high]) =>
      [low, high, {x: NaN, y: NaN}]);
    return [
      {...line(0, {}), showLine: false, pointRadius: 14, pointStyle: 'line', order: 1,
        pointBorderWidth: 2.5, pointBorderColor: colors.best},
      {...line(0, {}), data: bar, spanGaps: false, borderWidth: 28, borderColor: colors.band},
    ];
  }
  return [
    line(0, {borderColor: colors.best, borderWidth: 2.2, order: 1}),
    line(-1, {backgroundColor: colors.band, fill: '+1'}),
    line(1, {}),
  ];
}

// One small chart a parameter, the important ones first.
function draw_parameters() {
  const place = document.getElementById('dependence');
  place.textContent = '';
  const insight = data.insights[objective];
  const total = new Map((insight.importance ?? []).map((row) => [row.parameter, row.total]));
  const ordered = [...study.parameters].sort((a, b) =>
    (total.get(b.name) ?? 0) - (total.get(a.name) ?? 0)).slice(0, 24);
  const valued = trials.filter((trial) => has_value(trial, objective));
  const axis = value_axis(valued.map((trial) => trial.values[objective]), objective);
  for (const parameter of ordered) {
    const box = place.appendChild(document.createElement('div'));
    const head = box.appendChild(document.createElement('h3'));
    head.textContent = parameter.name + ' ';
    if (parameter.when) {
      head.appendChild(document.createElement('span')).textContent = 'where ' +
        parameter.when.parameter + ' is ' + parameter.when.in.map(value_text).join(', ');
    }
    box.appendChild(document.createElement('div')).className = 'plot';
    draw_parameter(box, parameter, axis, valued);
  }
}

function draw_parameter(box, parameter, axis, valued) {
  const along = parameter_axis(parameter);
  const room = along.labels ? 0.5 : 0;
  const points = valued.filter((trial) => has_parameter(trial, parameter.name)).map((trial) => ({
    x: along.place(trial.parameters[parameter.name]) + spread(trial.index, room),
    y: axis.clamp(trial.values[objective]),
    trial,
  }));
  const datasets = [
    ...dependence_datasets(parameter, along, axis),
    {...dots(points, {order: 3}), pointRadius: points.length > 500 ? 1.5 : 2.6},
  ];
  const scales = {x: scale_of(along, ''), y: scale_of(axis, '')};
  draw(box, points.length > 0 && {data: {datasets}, options: trial_options(scales)},
    valued.length > 0 ? 'No trial with a value has it.' : 'No trial has a value yet.');
}

function draw_front() {
  const section = document.getElementById('front');
  section.hidden = study.objectives.length < 2;
  if (section.hidden) return;
  const [x, y] = ['front-x', 'front-y'].map((id) => Number(document.getElementById(id).value));
  const results = results_of(x).filter((trial) => has_value(trial, y));
  const axes = [x, y].map((i) => value_axis(results.map((trial) => trial.values[i]), i));
  const at = (trial) => ({x: axes[0].clamp(trial.values[x]), y: axes[1].clamp(trial.values[y]), trial});
  const chosen = results.filter((trial) => front.has(trial.name)).map(at);
  const others = results.filter((trial) => !front.has(trial.name)).map(at);
  chosen.sort((a, b) => a.x - b.x);
  const datasets = [
    dots(chosen, {pointBackgroundColor: colors.best, pointRadius: 5, order: 1}),
    dots(others, {order: 2, pointBackgroundColor: colors.stopped}),
  ];
  // In the plane of two objectives the front is a staircase; in more it is not a line.
  if (study.objectives.length === 2) {
    datasets.push({type: 'line', data: chosen.map(({x, y}) => ({x, y})), borderColor: colors.best,
      borderWidth: 1.5, stepped: study.objectives[x].maximize ? 'after' : 'before', pointRadius: 0,
      pointHitRadius: 0, order: 3});
  }
  const title = (i) => study.objectives[i].metric + (study.objectives[i].maximize ? ' →' : ' ←');
  const scales = {x: scale_of(axes[0], title(x)), y: scale_of(axes[1], title(y))};
  draw(section, results.length > 0 && {data: {datasets}, options: trial_options(scales)},
    'No result yet.');
}

function draw_volume() {
  const section = document.getElementById('volume');
  section.hidden = study.objectives.length < 2;
  if (section.hidden) return;
  const points = data.volumes.map(([results, volume]) => ({x: results, y: volume}));
  const last = points.length > 0 ? points[points.length - 1].x : 1;
  const x = {type: 'linear', min: last > 1 ? 1 : 0, max: Math.max(last, 2)};
  const scales = {x: scale_of(x, 'results'), y: scale_of({type: 'linear', min: 0}, '')};
  scales.x.ticks.precision = 0;
  const datasets = [{type: 'line', data: points, stepped: 'before', borderColor: colors.best,
    borderWidth: 2.5, pointRadius: points.length === 1 ? 5 : 0, pointHitRadius: 0}];
  draw(section, points.length > 0 && {data: {datasets}, options: trial_options(scales)},
    'No result yet.');
}

function draw_expectation() {
  const section = document.getElementById('expectation');
  section.hidden = objective !== 0;  // what was expected is of the first objective
  if (section.hidden) return;
  const shown = results_of(0).filter((trial) => trial.expected);
  const values = shown.flatMap((trial) => [trial.values[0], trial.expected.mean]);
  const axis = value_axis(values, 0);
  const points = shown.map((trial) => ({
    x: axis.clamp(trial.expected.mean),
    y: axis.clamp(trial.values[0]),
    trial,
  }));
  const ends = [axis.min, axis.max].map((end) => ({x: end, y: end}));
  const datasets = [
    dots(points),
    {type: 'line', data: ends, borderColor: colors.quiet, borderDash: [5, 5], borderWidth: 1,
      pointRadius: 0, pointHitRadius: 0},
  ];
  const scales = {x: scale_of(axis, 'predicted'), y: scale_of(axis, 'result')};
  const options = trial_options(scales);
  options.plugins.tooltip.callbacks.afterTitle = (items) =>
    items[0]?.raw.trial ? expected_text(items[0].raw.trial) : '';
  draw(section, points.length > 0 && {data: {datasets}, options},
    'Too few trials have ended to predict anything.');
}

function expected_text(trial) {
  const expected = trial.expected;
  return 'expected ' + number_text(expected.mean) + ' ± ' + number_text(expected.deviation) +
    ', better than ' + percent_text(expected.beats) + ' of random points (' + expected.trials +
    ' trials known)';
}

// Which slot a run had is not recorded: each takes the first one that is free.
function runs_on_slots() {
  const runs = trials.flatMap((trial) =>
    trial.runs.map(([begin, end, outcome]) => ({begin, end, outcome, trial})));
  runs.sort((a, b) => a.begin - b.begin || a.end - b.end);
  const free_from = [];
  for (const run of runs) {
    const free = free_from.findIndex((time) => time <= run.begin);
    run.slot = free < 0 ? free_from.length : free;
    free_from[run.slot] = run.end;
  }
  return {runs, slots: free_from.length};
}

function run_color(run) {
  if (run.trial === best_of(objective)) return colors.best;
  if (['Failed', 'TimedOut', 'Hung', 'OutOfMemory'].includes(run.outcome)) return colors.bad;
  if (run.outcome === 'Stopped' || run.outcome === 'Disrupted') return colors.stopped;
  return run.outcome === 'Running' ? colors.good : colors.accent;
}

function draw_timeline() {
  const section = document.getElementById('timeline');
  const {runs, slots} = runs_on_slots();
  const labels = Array.from({length: slots}, (_, i) => String(i + 1));
  section.querySelector('.plot').style.height = Math.min(62 + 24 * Math.max(slots, 2), 900) + 'px';
  const end = runs.reduce((latest, run) => Math.max(latest, run.end), 0);
  const unit = end > 7200000 ? 3600000 : end > 120000 ? 60000 : 1000;
  const points = runs.map((run) => ({
    x: [run.begin / unit, run.end / unit],
    y: labels[run.slot],
    trial: run.trial,
    run,
  }));
  const unit_name = {1000: 'seconds', 60000: 'minutes', 3600000: 'hours'}[unit];
  const scales = {
    x: scale_of({type: 'linear', min: 0, max: end / unit}, unit_name),
    y: {type: 'category', labels, grid: {display: false}, ticks: {autoSkip: true}},
  };
  const options = trial_options(scales, {indexAxis: 'y'});
  options.interaction = {mode: 'nearest', intersect: true};
  options.plugins.tooltip.callbacks.afterTitle = (items) => items[0]
    ? items[0].raw.run.outcome + ' after ' + duration_text(items[0].raw.run.end - items[0].raw.run.begin)
    : '';
  const datasets = [{data: points, backgroundColor: runs.map(run_color), grouped: false,
    borderColor: colors.panel, borderWidth: runs.length > 500 ? 0 : 1, borderSkipped: false,
    borderRadius: 3, maxBarThickness: 16}];
  draw(section, runs.length > 0 && {type: 'bar', data: {datasets}, options}, 'Nothing ran yet.');
}
