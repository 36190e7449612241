//! Explains which file a route with files would look for. No file is opened, so an explanation does not
//! say whether it exists.

use catamaran_files::{FileQuery, FilesConfig, NameFault};

use super::{Draft, text};
use crate::exchange::verdict::{FilesRequest, WithoutFile};
use crate::site::Site;
use crate::site::route::Route;

impl Draft {
    /// Shows which file would be served, and what happens if it does not exist: 404, or the request is
    /// forwarded.
    pub(super) fn show_file(
        &mut self,
        site: &Site,
        route: Option<&Route>,
        request: FilesRequest<'_>,
    ) {
        let config = request.directory.config();
        let described = describe(request.query, config);
        match request.without_file {
            WithoutFile::NotFound(_) => {
                self.show_rewrite(&text(&request.path));
                match described {
                    Ok(file) => {
                        self.answer(200, "file", &format!("{file}, or 404 without it"));
                        self.then.extend(follow(config));
                    }
                    Err(why) => self.answer(404, "file-hidden", &why),
                }
            }
            WithoutFile::Forward(mut forward) => {
                self.forward(site, route, &mut forward);
                match described {
                    Ok(file) => {
                        self.summary = format!("{file}; without it {}", self.summary);
                        let first = format!("{file} is served if it is there; else it goes on");
                        self.then.insert(0, first);
                        self.then.extend(follow(config));
                    }
                    Err(why) => self.then.insert(0, format!("no file is looked for: {why}")),
                }
            }
        }
    }
}

/// Names the file or directory in words; `Err`: why no file is looked for.
fn describe(query: Result<FileQuery, NameFault>, config: &FilesConfig) -> Result<String, String> {
    let name = query.map_err(|fault| fault.to_string())?.name;
    let file = config.root.join(text(name.relative()).as_str());
    let file = file.display();
    Ok(if name.is_directory() {
        format!("the file that stands for the directory {file}")
    } else {
        format!("the file {file}")
    })
}

/// Lists in sentences what is served in place of the file: an index for a directory, the fallback if it
/// is missing.
fn follow(config: &FilesConfig) -> Vec<String> {
    let mut then = Vec::new();
    if !config.index.is_empty() {
        let names = config.index.join(", ");
        then.push(format!("for a directory, the first that exists of {names}"));
    }
    if let Some(fallback) = &config.fallback {
        then.push(format!(
            "without a file, {fallback}, if the last name has no dot and the client takes HTML"
        ));
    }
    then
}
