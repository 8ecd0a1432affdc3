//! A circuit's parts as areas: one HTML file, no script, nothing to fetch.

use cuzk_circuit::Component;

/// Parts below this share of the whole are drawn as one.
const LEAST_SHARE: f64 = 0.0005;
/// Levels that are drawn.
const LEVELS: usize = 9;

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{margin:0;height:100vh;display:flex;flex-direction:column;font:13px system-ui,sans-serif}\
h1{font-size:15px;margin:8px}\
p{margin:0 8px 8px}\
.map{flex:1;display:flex;margin:0 8px 8px;min-height:0}\
.part{display:flex;flex-direction:column;min-width:0;min-height:0;overflow:hidden;\
box-sizing:border-box;border:1px solid #0006;color:#000}\
.name{white-space:nowrap;overflow:hidden;text-overflow:ellipsis;padding:0 3px;flex:none}\
.parts{flex:1;display:flex;min-width:0;min-height:0}\
.row{flex-direction:row}.column{flex-direction:column}\
.part:hover{border-color:#000}";

/// The page: each part's area is its share of the constraints.
pub fn page(title: &str, whole: &Component) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\
         <style>{STYLE}</style>\n<h1>{0}</h1>\n<p>Areas are constraints. Numbers in names are #. \
         Point at a part for its counts.</p>\n<div class=\"map\">\n",
        escaped(title)
    );
    let drawing = Drawing {
        all: whole.constraints.max(1) as f64,
    };
    drawing.part(&mut html, whole, "the circuit", 0, 210);
    html += "</div>\n</html>\n";
    html
}

struct Drawing {
    all: f64,
}

impl Drawing {
    fn share(&self, constraints: u64) -> f64 {
        constraints as f64 / self.all
    }

    fn part(&self, html: &mut String, part: &Component, name: &str, level: usize, hue: usize) {
        let share = self.share(part.constraints);
        let [a, b, c] = part.nonzeros;
        let tip = format!(
            "{name}\n{:.2} % of the constraints: {}\n{} private variables, {} times\ncoefficients: A {a}, B {b}, C {c}",
            100.0 * share,
            part.constraints,
            part.aux,
            part.occurrences
        );
        self.open(html, share, &tip, name, level, hue);
        let large: Vec<&Component> = part
            .parts
            .iter()
            .filter(|p| self.share(p.constraints) >= LEAST_SHARE)
            .collect();
        if level < LEVELS && !large.is_empty() {
            let direction = if level.is_multiple_of(2) {
                "row"
            } else {
                "column"
            };
            *html += &format!("<div class=\"parts {direction}\">");
            let drawn: u64 = large.iter().map(|p| p.constraints).sum();
            for (k, inner) in large.into_iter().enumerate() {
                let hue = if level == 0 {
                    67 * k % 360
                } else {
                    hue + 9 * k
                };
                self.part(html, inner, &inner.name, level + 1, hue % 360);
            }
            let rest = part.constraints - drawn.min(part.constraints);
            if self.share(rest) >= LEAST_SHARE {
                let tip = format!("not in a part that is drawn: {rest} constraints");
                self.open(html, self.share(rest), &tip, "", level + 1, hue);
                *html += "</div>";
            }
            *html += "</div>";
        }
        *html += "</div>\n";
    }

    fn open(&self, html: &mut String, share: f64, tip: &str, name: &str, level: usize, hue: usize) {
        let light = 88 - 4 * level.min(9);
        *html += &format!(
            "<div class=\"part\" style=\"flex:{share:.6} 1 0;background:hsl({hue} 55% {light}%)\" title=\"{}\">\
             <div class=\"name\">{} {:.1} %</div>",
            escaped(tip),
            escaped(name),
            100.0 * share
        );
    }
}

/// Text as HTML, in quotes or not.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            _ => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, constraints: u64, parts: Vec<Component>) -> Component {
        Component {
            name: name.into(),
            constraints,
            parts,
            ..Component::default()
        }
    }

    #[test]
    fn every_large_part_is_drawn_once_and_names_are_escaped() {
        let inner = vec![part("sha<256>", 900, vec![]), part("tiny", 0, vec![])];
        let whole = part(
            "",
            2000,
            vec![part("label #", 1500, inner), part("tree", 500, vec![])],
        );
        let html = page("a & b", &whole);
        for text in [
            "label # 75.0 %",
            "tree 25.0 %",
            "sha&lt;256&gt; 45.0 %",
            "a &amp; b",
        ] {
            assert!(html.contains(&format!(">{text}<")), "{text}");
        }
        assert!(!html.contains("tiny") && !html.contains("<script"));
        assert!(html.contains("not in a part that is drawn: 600 constraints"));
        assert_eq!(html.matches("<div").count(), html.matches("</div>").count());
    }
}
