"""Loss curves as a picture of its own: SVG that needs no script, font or network."""

from xml.sax.saxutils import escape

WIDTH, HEIGHT, MARGIN = 720, 400, 56
STYLES = ('stroke="#c2410c" stroke-width="5" opacity="0.45"', 'stroke="#1d4ed8" stroke-width="1.5"')


def ticks(low, high, count=5):
    return [low + (high - low) * i / (count - 1) for i in range(count)]


def svg(title, curves):
    """`curves`: name and values of each, the first drawn broad so that it is seen below the second."""
    values = [value for _, curve in curves for value in curve]
    low, high = min(values), max(values)
    high = high if high > low else low + 1
    last = max(len(curve) for _, curve in curves)

    def x(i):
        return MARGIN + (WIDTH - 2 * MARGIN) * i / max(1, last - 1)

    def y(value):
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * (value - low) / (high - low)

    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
             f'<text x="{MARGIN}" y="24" font-size="15">{escape(title)}</text>']
    for value in ticks(low, high):
        height = f"{y(value):.1f}"
        parts.append(f'<line x1="{MARGIN}" x2="{WIDTH - MARGIN}" y1="{height}" y2="{height}" stroke="#ddd"/>'
                     f'<text x="{MARGIN - 6}" y="{height}" dy="4" text-anchor="end">{value:.3g}</text>')
    for i in sorted({round(tick) for tick in ticks(1, last)}):
        parts.append(f'<text x="{x(i - 1):.1f}" y="{HEIGHT - MARGIN + 18}" text-anchor="middle">{i}</text>')
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 12}" text-anchor="middle">epoch</text>')
    for number, (name, curve) in enumerate(curves):
        style = STYLES[number % len(STYLES)]
        points = " ".join(f"{x(i):.1f},{y(value):.1f}" for i, value in enumerate(curve))
        top = 44 + 18 * number
        parts.append(f'<polyline fill="none" {style} points="{points}"/><line x1="{WIDTH - 190}" x2="{WIDTH - 150}" '
                     f'y1="{top}" y2="{top}" {style}/><text x="{WIDTH - 142}" y="{top + 4}">{escape(name)}</text>')
    return "\n".join(parts) + "\n</svg>\n"
