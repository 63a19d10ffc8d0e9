//! What colours and weights mean. Colour is never the only sign of anything.

use ratatui::style::{Color, Modifier, Style};

/// How things are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    /// Whether there is colour; weights are there in any case.
    pub(crate) colour: bool,
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Plain,
    /// What may be passed over.
    Dim,
    Strong,
    /// What the person said, and what waits for them.
    Person,
    /// Names of tools, agents, commands.
    Name,
    Heading,
    Code,
    Link,
    Good,
    Warning,
    Bad,
    Added,
    Removed,
    /// What a key would take.
    Chosen,
}

/// A row for each role: its colour, and its weight.
const TABLE: [(Role, Color, Modifier); 14] = [
    (Role::Plain, Color::Reset, Modifier::empty()),
    (Role::Dim, Color::Reset, Modifier::DIM),
    (Role::Strong, Color::Reset, Modifier::BOLD),
    (Role::Person, Color::Cyan, Modifier::BOLD),
    (Role::Name, Color::Magenta, Modifier::BOLD),
    (Role::Heading, Color::Blue, Modifier::BOLD),
    (Role::Code, Color::Yellow, Modifier::empty()),
    (Role::Link, Color::Blue, Modifier::UNDERLINED),
    (Role::Good, Color::Green, Modifier::empty()),
    (Role::Warning, Color::Yellow, Modifier::BOLD),
    (Role::Bad, Color::Red, Modifier::BOLD),
    (Role::Added, Color::Green, Modifier::empty()),
    (Role::Removed, Color::Red, Modifier::empty()),
    (Role::Chosen, Color::Reset, Modifier::REVERSED),
];

impl Theme {
    /// How this role is shown.
    pub(crate) fn of(self, role: Role) -> Style {
        let (_, colour, weight) =
            TABLE.into_iter().find(|row| row.0 == role).unwrap_or((role, Color::Reset, Modifier::empty()));
        let style = Style::new().add_modifier(weight);
        if self.colour && colour != Color::Reset { style.fg(colour) } else { style }
    }
}
