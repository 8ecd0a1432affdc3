//! Changes to single keys, from `CUZK_SECTION_KEY` variables and from flags.

use super::{Config, ConfigError};
use toml::Value;

/// One key's new value.
#[derive(Clone, Debug, PartialEq)]
pub struct Override {
    /// Where it comes from, for messages.
    origin: String,
    /// The key with its sections, as in `daemon.tls.key`.
    key: String,
    /// The value as text; lists are separated by commas.
    text: String,
}

impl Override {
    /// A flag's value.
    pub fn flag(flag: &str, key: &str, text: impl Into<String>) -> Self {
        Override {
            origin: format!("--{flag}"),
            key: key.to_owned(),
            text: text.into(),
        }
    }

    /// A flag of the form `section.key=value`.
    ///
    /// # Errors
    /// There is no `=`.
    pub fn assignment(text: &str) -> Result<Self, ConfigError> {
        let (key, value) = text.split_once('=').ok_or_else(|| ConfigError::Override {
            origin: "--set".to_owned(),
            message: format!("expected section.key=value, found {text:?}"),
        })?;
        Ok(Self::flag("set", key.trim(), value.trim()))
    }

    /// The changes that the environment asks for: every variable whose name begins with `CUZK_` and a
    /// section's name must name a key.
    ///
    /// # Errors
    /// A variable names a section but no key of it.
    pub fn from_environment(
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Vec<Self>, ConfigError> {
        let keys = all_keys();
        let mut found = Vec::new();
        for (variable, text) in variables {
            let Some(name) = variable.strip_prefix("CUZK_") else {
                continue;
            };
            if let Some(key) = keys.iter().find(|key| variable_of(key) == variable) {
                found.push(Override {
                    origin: variable,
                    key: key.clone(),
                    text,
                });
            } else if keys.iter().any(|key| {
                key.split_once('.')
                    .is_some_and(|(section, _)| name.starts_with(&(section.to_uppercase() + "_")))
            }) {
                return Err(ConfigError::Override {
                    message: "no such key".to_owned(),
                    origin: variable,
                });
            }
        }
        // The environment has no order; messages should not depend on it.
        found.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(found)
    }

    /// The configuration with this change.
    ///
    /// # Errors
    /// There is no such key, or the value does not parse.
    pub(super) fn apply(&self, config: Config) -> Result<Config, ConfigError> {
        let wrong = |message: String| ConfigError::Override {
            origin: self.origin.clone(),
            message,
        };
        let mut tree = Value::try_from(&config).map_err(|e| wrong(e.to_string()))?;
        let mut place = &mut tree;
        for name in self.key.split('.') {
            place = place
                .get_mut(name)
                .ok_or_else(|| wrong(format!("there is no key {:?}", self.key)))?;
        }
        *place = self
            .typed(place)
            .map_err(|message| wrong(format!("{}: {message}", self.key)))?;
        tree.try_into()
            .map_err(|e: toml::de::Error| wrong(format!("{}: {}", self.key, e.message().trim())))
    }

    /// The text in the type that the key has now.
    fn typed(&self, now: &Value) -> Result<Value, String> {
        let text = self.text.trim();
        Ok(match now {
            Value::Table(_) => return Err("is a section, not a key".to_owned()),
            Value::Array(_) => Value::Array(
                text.split(',')
                    .map(str::trim)
                    .filter(|item| !item.is_empty())
                    .map(|item| Value::String(item.to_owned()))
                    .collect(),
            ),
            Value::Integer(_) => text
                .parse()
                .map(Value::Integer)
                .map_err(|_| format!("expected a whole number, found {text:?}"))?,
            Value::Boolean(_) => text
                .parse()
                .map(Value::Boolean)
                .map_err(|_| format!("expected true or false, found {text:?}"))?,
            _ => Value::String(text.to_owned()),
        })
    }
}

/// The variable that overrides a key: `CUZK_DAEMON_LISTEN` for `daemon.listen`.
pub(super) fn variable_of(key: &str) -> String {
    format!("CUZK_{}", key.replace('.', "_").to_uppercase())
}

/// Every key with its sections, in the order of the alphabet.
pub(super) fn all_keys() -> Vec<String> {
    fn walk(value: &Value, path: &str, keys: &mut Vec<String>) {
        let Value::Table(table) = value else {
            keys.push(path.to_owned());
            return;
        };
        for (name, inner) in table {
            let dot = if path.is_empty() { "" } else { "." };
            walk(inner, &format!("{path}{dot}{name}"), keys);
        }
    }
    let mut keys = Vec::new();
    if let Ok(tree) = Value::try_from(Config::default()) {
        walk(&tree, "", &mut keys);
    }
    keys
}
