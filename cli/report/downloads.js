// Files made of the page: tables as CSV, charts as pictures.
'use strict';

function save(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = (study.name + '-' + name).replace(/[^\w.-]+/g, '-');
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

// A field of RFC 4180. Text that a spreadsheet would take for a formula gets an apostrophe.
function csv_field(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? '\'' + value : String(value);
  return /[",\r\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
}

function csv_text(rows) {
  return rows.map((row) => row.map(csv_field).join(',') + '\r\n').join('');
}

// The selected trials in the order of the table, with all digits.
function trials_csv() {
  return csv_text([columns.map((column) => column.title),
    ...visible_trials().map((trial) => columns.map((column) => column.value ? column.value(trial) : column.key(trial)))]);
}

function importance_csv() {
  const rows = data.insights[objective].importance ?? [];
  return csv_text([['parameter', 'alone', 'in all', 'deviation'],
    ...rows.map((row) => [row.parameter, row.main, row.total, row.deviation])]);
}

// The canvas on the panel's colour: alone it is transparent.
/** @param {HTMLCanvasElement} canvas */
function picture_of(canvas) {
  const copy = document.createElement('canvas');
  copy.width = canvas.width;
  copy.height = canvas.height;
  const context = copy.getContext('2d');
  context.fillStyle = colors.panel;
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  return copy;
}

function save_picture(section, name) {
  const canvas = section.querySelector('canvas');
  if (canvas) picture_of(canvas).toBlob((blob) => blob && save(name + '.png', blob));
}

function add_download(head, text, label, action) {
  const button = head.appendChild(document.createElement('button'));
  button.type = 'button';
  button.className = 'download';
  button.textContent = text;
  button.setAttribute('aria-label', text + ': ' + label);
  button.addEventListener('click', action);
}

const kCsv = {type: 'text/csv;charset=utf-8'};

function watch_downloads() {
  for (const section of document.querySelectorAll('section')) {
    const head = section.querySelector('h2');
    const title = head.textContent;
    const tools = document.createElement('span');
    tools.className = 'tools';
    if (section.id === 'importance') {
      add_download(tools, 'CSV', 'download the importance',
        () => save('importance.csv', new Blob([importance_csv()], kCsv)));
    }
    if (section.id === 'trials') {
      add_download(tools, 'CSV', 'download the selected trials',
        () => save('trials.csv', new Blob([trials_csv()], kCsv)));
    } else if (section.querySelector('canvas')) {
      add_download(tools, 'PNG', 'download the picture of ' + title, () => save_picture(section, section.id));
    }
    section.prepend(tools);
  }
}
