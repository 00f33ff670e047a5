//! Faults that a reader would stumble over on a page, looked for in a browser: wide and narrow, light and dark, with
//! scripts and without.

use crate::browser::{Browser, View};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Looks for what a reader would stumble over; gives sentences.
const FAULTS: &str = r"(() => {
  const faults = [], wide = document.documentElement.clientWidth;
  const page = document.documentElement.scrollWidth;
  if (page > innerWidth) faults.push(`the page is ${page} wide in a window of ${innerWidth}`);
  const scrolls = e => e && (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  for (const e of document.querySelectorAll('body *')) {
    const box = e.getBoundingClientRect();
    if (box.width && box.right > wide + 1 && !scrolls(e)) faults.push(`${e.tagName} ends at ${Math.round(box.right)}: ${e.textContent.slice(0, 40)}`);
  }
  for (const svg of document.querySelectorAll('svg')) {
    const around = svg.getBoundingClientRect(), name = svg.getAttribute('aria-label');
    if (svg.getAttribute('aria-hidden')) continue;
    if (!name) faults.push('a drawing without a label');
    const texts = [...svg.querySelectorAll('text')].filter(t => t.textContent.trim());
    const boxes = texts.map(t => t.getBoundingClientRect());
    boxes.forEach((a, i) => {
      if (a.left < around.left - 1 || a.right > around.right + 1 || a.top < around.top - 1 || a.bottom > around.bottom + 1)
        faults.push(`${name}: '${texts[i].textContent}' is cut off`);
      boxes.forEach((b, j) => {
        if (j <= i) return;
        const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
        if (x > 1 && y > 2.5) faults.push(`${name}: '${texts[i].textContent}' lies over '${texts[j].textContent}'`);
      });
    });
  }
  for (const table of document.querySelectorAll('table')) {
    if (!table.querySelector('thead th')) faults.push('a table without a head');
  }
  const light = c => { const [r, g, b] = c.match(/[\d.]+/g).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const paper = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if (!/rgba\(0, 0, 0, 0\)|transparent/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
  const seen = new Set();
  for (const e of document.querySelectorAll('td, th, p, li, a, small, h1, h2, figcaption, dd, dt, pre')) {
    const ink = getComputedStyle(e).color, back = paper(e), pair = ink + back;
    if (seen.has(pair)) continue;
    seen.add(pair);
    const [a, b] = [light(ink), light(back)].sort((x, y) => y - x), contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) faults.push(`${e.tagName} '${e.textContent.slice(0, 20)}': contrast ${contrast.toFixed(1)} of ${ink} on ${back}`);
  }
  return faults;
})()";

/// Addresses of links, and names that links can lead to.
const LINKS: &str = "[...document.querySelectorAll('a[href]')].map(a => a.getAttribute('href'))";
const NAMES: &str = "[...document.querySelectorAll('[id]')].map(e => e.id)";

fn pages(dir: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path().canonicalize().unwrap())
        .filter(|path| path.extension().is_some_and(|extension| extension == "html"))
        .collect();
    pages.sort();
    pages
}

fn strings(value: &serde_json::Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_string()).collect()
}

/// Every view of a page; the faults of all, each with its view.
pub fn look(browser: &mut Browser, page: &Path) -> Result<Vec<String>, String> {
    let (desk, phone) = (1280, 390);
    let mut faults = Vec::new();
    for (width, dark, scripts) in
        [(desk, false, true), (phone, false, true), (desk, true, false), (phone, true, false)]
    {
        let view = View { width, phone: width == phone, dark, scripts };
        let opened = browser.open(page, view)?;
        let mut found = opened.errors;
        found.extend(opened.requests.into_iter().filter(|address| !address.starts_with("file://")));
        found.extend(strings(&browser.value(FAULTS)?));
        let name = page.file_name().unwrap().to_string_lossy();
        faults.extend(found.into_iter().map(|fault| format!("{name} at {view:?}: {fault}")));
    }
    Ok(faults)
}

/// Links of a page that lead nowhere.
pub fn broken_links(browser: &mut Browser, page: &Path) -> Result<Vec<String>, String> {
    let names: BTreeSet<String> = strings(&browser.value(NAMES)?).into_iter().collect();
    let leads_nowhere = |link: &String| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let elsewhere = !file.is_empty() && !page.parent().unwrap().join(file).is_file();
        elsewhere || (file.is_empty() && !names.contains(anchor))
    };
    Ok(strings(&browser.value(LINKS)?).into_iter().filter(leads_nowhere).collect())
}

/// Every view of every page in `dir`, and where their links lead: how many pages, and their faults.
pub fn look_at_all(browser: &mut Browser, dir: &Path) -> Result<(usize, Vec<String>), String> {
    let (pages, mut faults) = (pages(dir), Vec::new());
    for page in &pages {
        faults.extend(look(browser, page)?);
        let links = broken_links(browser, page)?;
        faults.extend(links.into_iter().map(|link| format!("{}: dead link {link}", page.display())));
    }
    let drawings = drawings(dir);
    for drawing in &drawings {
        faults.extend(look_at_drawing(browser, drawing)?);
    }
    Ok((pages.len() + drawings.len(), faults))
}

/// Drawings that are files of their own.
fn drawings(dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join("flames")) else { return Vec::new() };
    let mut drawings: Vec<PathBuf> =
        entries.map(|entry| entry.unwrap().path().canonicalize().unwrap()).collect();
    drawings.sort();
    drawings
}

/// Faults that a reader would stumble over in a drawing opened by itself: errors, addresses outside, nothing drawn.
fn look_at_drawing(browser: &mut Browser, drawing: &Path) -> Result<Vec<String>, String> {
    const FRAMES: &str = "document.querySelectorAll('#frames rect').length";
    let mut faults = Vec::new();
    for (dark, scripts) in [(false, true), (true, false)] {
        let opened = browser.open(drawing, View { width: 1280, phone: false, dark, scripts })?;
        let mut found = opened.errors;
        found.extend(opened.requests.into_iter().filter(|address| !address.starts_with("file://")));
        if browser.value(FRAMES)?.as_u64().is_none_or(|frames| frames < 2) {
            found.push("fewer than two frames are drawn".to_string());
        }
        let name = drawing.file_name().unwrap().to_string_lossy();
        faults.extend(found.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    Ok(faults)
}
