//! Numbers, times and tables as text.

/// Columns of a terminal.
pub const WIDTH: usize = 80;

/// A number with thousands set apart.
pub fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.max(0.0));
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with as many digits as it needs.
pub fn amount(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => thousands(value),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 0.1 => format!("{value:.3}"),
        0.0 => "0".to_string(),
        v if v >= 0.001 => format!("{value:.5}"),
        _ => format!("{value:.1e}"),
    }
}

/// A time in words, such as `3 min`.
pub fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s if s < 172_800.0 => format!("{:.1} h", s / 3600.0),
        s => format!("{:.1} days", s / 86_400.0),
    }
}

/// A time in seconds since the epoch as RFC 3339 in UTC.
///
/// Source: the civil-from-days algorithm, with March as the first month of a year.
pub fn rfc3339(seconds: u64) -> String {
    let days = seconds / 86_400;
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_shifted + 2) / 5 + 1;
    let month = if month_shifted < 10 { month_shifted + 3 } else { month_shifted - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        seconds / 3600 % 24,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// The start of a text, marked where it was cut.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_string();
    }
    text.chars().take(width - 1).chain(['~']).collect()
}

/// Words in lines of at most 80 columns, all but the first indented.
pub fn fold<S: AsRef<str>>(words: &[S], between: &str, indent: usize) -> String {
    let (mut text, mut column) = (String::new(), indent);
    for (index, word) in words.iter().map(AsRef::as_ref).enumerate() {
        let word = if index + 1 < words.len() { format!("{word}{between}") } else { word.to_string() };
        let length = word.chars().count();
        if column + length > WIDTH && column > indent {
            text.truncate(text.trim_end().len());
            text.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        }
        text.push_str(&word);
        column += length;
    }
    text
}

/// A sentence in lines of at most 80 columns, the first after `start`, the others indented like it or by `indent`.
pub fn paragraph(start: &str, text: &str, indent: usize) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (mut lines, mut column) = (start.to_string(), start.chars().count());
    for (index, word) in words.iter().enumerate() {
        let length = word.chars().count();
        let between = usize::from(index > 0);
        if column + between + length > WIDTH && column > indent {
            lines.truncate(lines.trim_end().len());
            lines.push_str(&format!("\n{:indent$}", ""));
            column = indent;
        } else if index > 0 {
            lines.push(' ');
            column += 1;
        }
        lines.push_str(word);
        column += length;
    }
    lines + "\n"
}

/// As [`paragraph`], with words that no line has room for broken, after a semicolon where there is one.
pub fn uncut(start: &str, text: &str, indent: usize) -> String {
    let room = WIDTH - indent.max(start.chars().count());
    let mut broken = String::new();
    for word in text.split_whitespace() {
        let mut rest: Vec<char> = word.chars().collect();
        while rest.len() > room {
            let at = rest[..room].iter().rposition(|c| *c == ';').map_or(room, |place| place + 1);
            let later = rest.split_off(at);
            broken.extend(rest);
            broken.push(' ');
            rest = later;
        }
        broken.extend(rest);
        broken.push(' ');
    }
    paragraph(start, &broken, indent)
}

/// As [`align`], in as many tables as fit the terminal, each beginning with the first `fixed` columns.
pub fn align_within(rows: &[Vec<String>], fixed: usize) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0) + 2
    };
    let beginning: usize = (0..fixed).map(width).sum();
    let (mut tables, mut room) = (vec![Vec::new()], WIDTH + 2 - beginning.min(WIDTH));
    for column in fixed..columns {
        if width(column) > room && tables.last().is_some_and(|table| !table.is_empty()) {
            tables.push(Vec::new());
            room = WIDTH + 2 - beginning.min(WIDTH);
        }
        tables.last_mut().expect("there is one").push(column);
        room = room.saturating_sub(width(column));
    }
    let part = |chosen: &Vec<usize>| {
        let of = |row: &Vec<String>| {
            (0..fixed).chain(chosen.iter().copied()).filter_map(|column| row.get(column).cloned()).collect()
        };
        align(&rows.iter().map(of).collect::<Vec<Vec<String>>>())
    };
    tables.iter().map(part).collect::<Vec<_>>().join("\n")
}

/// Text in columns, the first left-aligned, the others right-aligned.
pub fn align(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            if column == 0 {
                text.push_str(&format!("{cell:<w$}", w = widths[column]));
            } else {
                text.push_str(&format!("  {cell:>w$}", w = widths[column]));
            }
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_read_well() {
        assert_eq!([1_234_567.4, 999.0].map(thousands), ["1,234,567", "999"]);
        assert_eq!(rfc3339(1_795_235_645), "2026-11-21T04:34:05Z");
        assert_eq!([5.0, 100.0, 7200.0, 2e5].map(duration), ["5 s", "2 min", "2.0 h", "2.3 days"]);
        assert_eq!(
            [123_456.0, 12.34, 0.5, 0.00123, 4.2e-6, 0.0].map(amount),
            ["123,456", "12.3", "0.500", "0.00123", "4.2e-6", "0"]
        );
    }

    #[test]
    fn long_texts_stay_within_the_terminal() {
        let words: Vec<&str> = std::iter::repeat_n("rocksdb@10.10.1.1", 20).collect();
        let text = fold(&words, ", ", 5);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.matches("rocksdb").count(), 20);
        assert_eq!(cut("abcdef", 4), "abc~");
        let text = paragraph("! ", &"words of many letters ".repeat(9), 4);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH && !line.ends_with(' ')), "{text}");
        assert!(
            text.starts_with("! words")
                && text.lines().skip(1).all(|line| line.starts_with("    ") && !line.starts_with("     ")),
            "{text}"
        );
        assert_eq!(paragraph("", "a  b", 2), "a b\n");
        let value = format!("x: {{{}}}", "name_of_an_option=17;".repeat(12));
        let text = uncut("  ", &value, 6);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().collect::<String>(), value.replace(' ', ""), "nothing is lost");
        assert!(text.lines().nth(1).unwrap().ends_with(';'), "{text}");
    }

    #[test]
    fn columns_line_up() {
        let rows = vec![vec!["a".into(), "10".into()], vec!["long".into(), "9".into()]];
        assert_eq!(align(&rows), "a     10\nlong   9\n");
        assert_eq!(align_within(&rows, 1), align(&rows));
        let wide = vec![(0..12).map(|column| format!("column-{column:04}")).collect::<Vec<_>>(); 2];
        let text = align_within(&wide, 1);
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert_eq!(
            (text.matches("column-0000").count(), text.matches("column-0011").count()),
            (6, 2),
            "{text}"
        );
    }
}
