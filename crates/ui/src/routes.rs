//! What each request does. All of `/api/` needs the token; a body and an answer are JSON there.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /`, `/style.css`, `/*.js` | the page, which holds no secret |
//! | `GET /page/SECRET` | a page of a run, in its sandbox |
//! | `GET /api/state` | version, this host's addresses, folder, jobs |
//! | `GET /api/tasks`, `/api/studies` | what can be started; the studies |
//! | `GET /api/files`, `/api/received` | the given files; the log of what a far end received |
//! | `POST /api/command`, `/api/jobs` `{ task, values }` | the command; starts it |
//! | `POST /api/job` `{ id, after }`, `/api/cancel` `{ id }` | the state of a job; asks it to end |
//! | `POST /api/runs` `{ search }`, `/api/run` `{ name }` | the list; the figures of a run |
//! | `POST /api/text` `{ name, which }` | its scenario or log |
//! | `POST /api/play`, `/api/resume`, `/api/delete` `{ name }`, `/api/beside` `{ names }` | work on runs |
//! | `POST /api/check` `{ text }`, `/api/scenario` `{ name, text }`, `/api/given` `{ name }` | scenarios |
//! | `POST /api/upload`, `/api/key` `{ name, key }` | a file from the browser; keeps or makes a key |
//! | `POST /api/end` `{ cancel }` | ends the window |

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::addresses::own_addresses;
use crate::door::{Door, Refusal, secret};
use crate::files::{
    GIVEN, PRIVATE, RECEIVED, create_private, make_private_folder, names_of_files, read_plain, within,
    write_private,
};
use crate::jobs::{Finished, JobKind, Jobs, Order};
use crate::pages::{OWN_POLICY, OwnFile, RUN_POLICY, RunPage, SecretPaths, own_file};
use crate::runs;
use crate::tasks::{TASKS, Values, order};

/// The largest body of a request, B: a scenario file of 10,000 lines has half of it.
pub(crate) const MAX_BODY: usize = 1 << 20;
/// The largest file that a browser may give, B. We chose 256 MiB: the papers sent 100 MB at most.
const MAX_UPLOAD: u64 = 256 << 20;
/// The most files that are given at a time. We chose 200.
const MAX_GIVEN: usize = 200;
/// How long a body may take. An upload takes at most as long as a connection lives.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The largest page that compares runs, B.
const MAX_PAGE: u64 = 64 << 20;
/// The file of `serve --log` with a block for each transfer.
const RECEIVE_LOG: &str = "receive-log.txt";
/// The header with the name of a file that a browser gives.
const FILE_NAME: &str = "x-file-name";
const CROSS_ORIGIN_RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");
const CROSS_ORIGIN_OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// All that requests reach.
pub(crate) struct Routes {
    door: Door,
    jobs: Jobs,
    out: PathBuf,
    version: &'static str,
    paths: SecretPaths,
    /// The studies that are built into the program, once it was asked for them.
    studies: OnceLock<Value>,
    is_ended: AtomicBool,
    end: Notify,
}

/// A request that is not answered as asked.
#[derive(Debug)]
struct Problem {
    status: StatusCode,
    text: String,
}

type Answer = Response<Full<Bytes>>;

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self { status: StatusCode::UNPROCESSABLE_ENTITY, text }
    }
}

impl Problem {
    fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }
}

#[derive(Deserialize)]
struct Filled {
    task: String,
    values: Values,
}

#[derive(Deserialize)]
struct JobAfter {
    id: u64,
    #[serde(default)]
    after: u64,
}

#[derive(Deserialize)]
struct Search {
    #[serde(default)]
    search: String,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Key {
    name: String,
    /// A key of somebody else. `None` makes one.
    key: Option<String>,
}

#[derive(Deserialize)]
struct NamedText {
    name: String,
    text: String,
}

#[derive(Deserialize)]
struct Which {
    name: String,
    which: String,
}

#[derive(Deserialize)]
struct Text {
    text: String,
}

#[derive(Deserialize)]
struct Two {
    names: [String; 2],
}

#[derive(Deserialize)]
struct End {
    cancel: bool,
}

impl Routes {
    pub(crate) fn new(door: Door, jobs: Jobs, out: PathBuf, version: &'static str) -> Self {
        let paths = SecretPaths::default();
        let (is_ended, end) = (AtomicBool::new(false), Notify::new());
        Self { door, jobs, out, version, paths, studies: OnceLock::new(), is_ended, end }
    }

    pub(crate) const fn jobs(&self) -> &Jobs {
        &self.jobs
    }

    /// Ends the window.
    pub(crate) fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.end.notify_one();
    }

    /// Is ready when the window ends.
    pub(crate) async fn ended(&self) {
        while !self.is_ended.load(Ordering::Relaxed) {
            self.end.notified().await;
        }
    }

    /// Answers a request.
    pub(crate) async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answer {
        if let Err(why) = self.door.check_sender(request.uri(), request.headers()) {
            return refusal(why);
        }
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        if let Some(api) = path.strip_prefix("/api/") {
            if let Err(why) = self.door.check_token(request.headers()) {
                return refusal(why);
            }
            let api = api.to_owned();
            return match self.answer_api(&method, api, request).await {
                Ok(value) => reply(StatusCode::OK, "application/json", value.to_string().into(), OWN_POLICY),
                Err(problem) => problem_reply(&problem),
            };
        }
        if method != Method::GET {
            let mut reply = problem_reply(&Problem::new(StatusCode::METHOD_NOT_ALLOWED, "only GET"));
            reply.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
            return reply;
        }
        if let Some(OwnFile { content_type, text, .. }) = own_file(&path) {
            return reply(StatusCode::OK, content_type, Bytes::from_static(text.as_bytes()), OWN_POLICY);
        }
        let page = path.strip_prefix("/page/").and_then(|secret| self.paths.find(secret));
        let Some(page) = page else {
            return problem_reply(&Problem::new(StatusCode::NOT_FOUND, "there is no such page"));
        };
        match blocking(move || self.run_page(&page)).await {
            Ok(bytes) => reply(StatusCode::OK, "text/html; charset=utf-8", bytes.into(), RUN_POLICY),
            Err(problem) => problem_reply(&problem),
        }
    }

    async fn answer_api(
        self: Arc<Self>,
        method: &Method,
        path: String,
        request: Request<Incoming>,
    ) -> Result<Value, Problem> {
        match (method, path.as_str()) {
            (&Method::POST, "upload") => self.take_upload(request).await,
            (&Method::GET, _) => blocking(move || self.get(&path)).await,
            (&Method::POST, _) => {
                let body = read_body(request).await?;
                blocking(move || self.post(&path, &body)).await
            }
            _ => Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "only GET and POST")),
        }
    }

    fn get(&self, path: &str) -> Result<Value, Problem> {
        match path {
            "state" => Ok(json!({
                "version": self.version, "addresses": own_addresses(), "out": self.out.to_string_lossy(), "jobs": self.jobs.overview(),
            })),
            "tasks" => Ok(json!(TASKS)),
            "files" => Ok(json!(names_of_files(&self.out.join(GIVEN)))),
            "received" => {
                let path = self.out.join(RECEIVED).join(RECEIVE_LOG);
                let bytes = match read_plain(&path, MAX_BODY as u64) {
                    Err(why) if why.kind() == ErrorKind::NotFound => Vec::new(),
                    read => read.map_err(|why| format!("{RECEIVE_LOG}: {why}"))?,
                };
                Ok(json!({ "text": String::from_utf8_lossy(&bytes) }))
            }
            "studies" => {
                if let Some(known) = self.studies.get() {
                    return Ok(known.clone());
                }
                let words = ["study", "list", "--json"].map(str::to_owned).to_vec();
                let studies = parsed(&self.jobs.run_short("studies", words)?)?;
                Ok(self.studies.get_or_init(|| studies).clone())
            }
            _ => Err(Problem::new(StatusCode::NOT_FOUND, "there is no such thing")),
        }
    }

    fn post(&self, path: &str, body: &[u8]) -> Result<Value, Problem> {
        match path {
            "command" => {
                let Filled { task, values } = read(body)?;
                // While a user fills a form in, it is no error that something is missing.
                Ok(match order(&task, &values, &self.out) {
                    Ok(order) => json!({ "command": self.jobs.command_text(&self.with_folder(order.words)) }),
                    Err(why) => json!({ "missing": why }),
                })
            }
            "jobs" => {
                let Filled { task, values } = read(body)?;
                Ok(json!({ "id": self.jobs.start(order(&task, &values, &self.out)?)?.id }))
            }
            "job" => {
                let JobAfter { id, after } = read(body)?;
                Ok(self.job(id)?.describe(after))
            }
            "cancel" => {
                let JobAfter { id, .. } = read(body)?;
                self.job(id)?.cancel();
                Ok(Value::Null)
            }
            "runs" => Ok(json!(runs::list(&self.out, &read::<Search>(body)?.search))),
            "run" => self.run(&read::<Named>(body)?.name),
            "text" => {
                let Which { name, which } = read(body)?;
                Ok(json!({ "text": runs::text(&self.out, &name, &which)? }))
            }
            "play" => self.play(&read::<Named>(body)?.name),
            "resume" => self.resume(&read::<Named>(body)?.name),
            "delete" => {
                runs::delete(&self.out, &read::<Named>(body)?.name)?;
                Ok(Value::Null)
            }
            "beside" => self.beside(&read::<Two>(body)?.names),
            "check" => self.check(&read::<Text>(body)?.text),
            "scenario" => {
                let NamedText { name, text } = read(body)?;
                write_private(&self.given(&name)?, text.as_bytes()).map_err(|why| why.to_string())?;
                Ok(Value::Null)
            }
            "given" => {
                let path = self.given(&read::<Named>(body)?.name)?;
                let bytes = read_plain(&path, MAX_BODY as u64).map_err(|why| why.to_string())?;
                let text = String::from_utf8(bytes).map_err(|_| "the file is no text".to_owned())?;
                Ok(json!({ "text": text }))
            }
            "key" => {
                let Key { name, key } = read(body)?;
                self.keep_key(&name, key)
            }
            "end" => {
                if read::<End>(body)?.cancel {
                    self.jobs.cancel_all();
                }
                self.end();
                Ok(Value::Null)
            }
            _ => Err(Problem::new(StatusCode::NOT_FOUND, "there is no such thing")),
        }
    }

    fn job(&self, id: u64) -> Result<Arc<crate::jobs::Job>, Problem> {
        let job = self.jobs.find(id);
        job.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, format!("job {id} is not known any more")))
    }

    /// The words of a command with the folder of runs, which a job has in any case.
    fn with_folder(&self, mut words: Vec<String>) -> Vec<String> {
        words.extend(["--out".to_owned(), self.out.to_string_lossy().into_owned()]);
        words
    }

    fn run(&self, name: &str) -> Result<Value, Problem> {
        let path = runs::directory(&self.out, name)?;
        let mut pages = serde_json::Map::new();
        for file in runs::pages(&path) {
            let page = RunPage { run: Some(name.to_owned()), file: file.to_owned() };
            pages.insert(file.to_owned(), json!(self.paths.path_of(page).map_err(|why| why.to_string())?));
        }
        let shown = runs::shown(&self.out, name);
        let can_go_on = runs::can_go_on(&path);
        let is_ours = self.jobs.ours().iter().any(|ours| ours.name == name);
        let words = ["run".to_owned(), "--resume".to_owned(), path.to_string_lossy().into_owned()];
        Ok(json!({
            "name": name,
            "pages": pages,
            "unfinished": can_go_on,
            "ours": is_ours,
            "resume_command": self.jobs.command_text(&words),
            "figures": shown.as_ref().ok(),
            "no_figures": shown.as_ref().err(),
        }))
    }

    fn run_page(&self, page: &RunPage) -> Result<Vec<u8>, Problem> {
        match &page.run {
            Some(run) => Ok(runs::page(&self.out, run, &page.file)?),
            None => {
                let path = within(&self.out.join(PRIVATE), &page.file)?;
                Ok(read_plain(&path, MAX_PAGE).map_err(|why| why.to_string())?)
            }
        }
    }

    fn play(&self, name: &str) -> Result<Value, Problem> {
        let path = runs::directory(&self.out, name)?;
        let words = vec!["play".to_owned(), path.to_string_lossy().into_owned()];
        done(&self.jobs.run_short("play", words)?)?;
        let page = RunPage { run: Some(name.to_owned()), file: "play.html".to_owned() };
        Ok(json!({ "path": self.paths.path_of(page).map_err(|why| why.to_string())? }))
    }

    /// Continues a run that a window on this folder started. A directory of somebody else would name the host
    /// that learns of this machine.
    fn resume(&self, name: &str) -> Result<Value, Problem> {
        let path = runs::directory(&self.out, name)?;
        let path = path.to_string_lossy().into_owned();
        let Some(started) = self.jobs.ours().into_iter().find(|started| started.name == name) else {
            let command = self.jobs.command_text(&["run".to_owned(), "--resume".to_owned(), path]);
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                format!(
                    "{name}: no window on this folder started it, and it may be somebody else's; to go on with it: {command}"
                ),
            ));
        };
        let mut words = vec!["run".to_owned(), format!("--resume={path}")];
        words.extend(started.to.as_ref().map(|to| format!("--to={to}")));
        let order = Order {
            kind: JobKind::Run,
            task: "resume".to_owned(),
            words,
            to: started.to,
            folders: Vec::new(),
        };
        Ok(json!({ "id": self.jobs.start(order)?.id }))
    }

    fn beside(&self, names: &[String; 2]) -> Result<Value, Problem> {
        let mut words = vec!["report".to_owned()];
        for name in names {
            words.push(runs::directory(&self.out, name)?.to_string_lossy().into_owned());
        }
        let file = format!("beside-{}.html", secret().map_err(|why| why.to_string())?);
        let path = self.out.join(PRIVATE).join(&file);
        words.extend(["-o".to_owned(), path.to_string_lossy().into_owned()]);
        forget_pages(&self.out.join(PRIVATE));
        done(&self.jobs.run_short("beside", words)?)?;
        let path = self.paths.path_of(RunPage { run: None, file }).map_err(|why| why.to_string())?;
        Ok(json!({ "path": path }))
    }

    fn check(&self, text: &str) -> Result<Value, Problem> {
        let path = self.out.join(PRIVATE).join("checked.toml");
        write_private(&path, text.as_bytes()).map_err(|why| why.to_string())?;
        let words = vec!["check".to_owned(), "--json".to_owned(), path.to_string_lossy().into_owned()];
        parsed(&self.jobs.run_short("check", words)?)
    }

    /// The path of a file that the user gives. Makes its folder.
    fn given(&self, name: &str) -> Result<PathBuf, Problem> {
        let folder = self.out.join(GIVEN);
        make_private_folder(&folder).map_err(|why| why.to_string())?;
        let path = within(&folder, name)?;
        if !path.exists() && names_of_files(&folder).len() >= MAX_GIVEN {
            return Err(format!("{MAX_GIVEN} files are in {} already: remove some", folder.display()).into());
        }
        Ok(path)
    }

    /// Writes `key` to a file, or makes one. Whether it is a good key, the program says that uses it.
    fn keep_key(&self, name: &str, key: Option<String>) -> Result<Value, Problem> {
        let key = match key {
            Some(key) => key,
            // Two secrets of 128 bits, as 64 hexadecimal digits.
            None => {
                let draw = || secret().map_err(|why| why.to_string());
                draw()? + &draw()?
            }
        };
        let mut file = create_private(&self.given(name)?).map_err(|why| format!("{name}: {why}"))?;
        writeln!(file, "{key}").map_err(|why| format!("{name}: {why}"))?;
        Ok(json!({ "key": key }))
    }

    /// Writes the body of a request into a file of the folder of given files.
    async fn take_upload(&self, request: Request<Incoming>) -> Result<Value, Problem> {
        let name = request.headers().get(FILE_NAME).and_then(|name| name.to_str().ok()).unwrap_or_default();
        let path = self.given(name)?;
        let too_large = || {
            Problem::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                format!("a file has at most {} MiB here", MAX_UPLOAD >> 20),
            )
        };
        let mut body = request.into_body();
        if body.size_hint().lower() > MAX_UPLOAD {
            return Err(too_large());
        }
        let failed = |why: &dyn std::fmt::Display| Problem::from(format!("{}: {why}", path.display()));
        let draft = path.with_file_name(format!(".{}", secret().map_err(|why| failed(&why))?));
        let mut file = create_private(&draft).map_err(|why| failed(&why))?;
        let mut length = 0_u64;
        let mut taken = Ok(());
        while let Some(frame) = body.frame().await {
            let bytes = match frame {
                Ok(frame) => frame.into_data().unwrap_or_default(),
                Err(why) => {
                    taken = Err(failed(&why));
                    break;
                }
            };
            length += bytes.len() as u64;
            if length > MAX_UPLOAD {
                taken = Err(too_large());
                break;
            }
            if let Err(why) = file.write_all(&bytes) {
                taken = Err(failed(&why));
                break;
            }
        }
        let kept = taken.and_then(|()| fs::rename(&draft, &path).map_err(|why| failed(&why)));
        if kept.is_err() {
            let _ = fs::remove_file(&draft);
        }
        kept.map(|()| json!({ "bytes": length }))
    }
}

/// Removes the pages of earlier comparisons.
fn forget_pages(folder: &Path) {
    for name in names_of_files(folder) {
        if name.starts_with("beside-") {
            let _ = fs::remove_file(folder.join(name));
        }
    }
}

/// Runs `work`, which may wait for files and processes, beside the server.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Problem> + Send + 'static,
) -> Result<T, Problem> {
    let failed =
        |_| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the work failed; this is a bug in talkpath");
    tokio::task::spawn_blocking(work).await.map_err(failed)?
}

async fn read_body(request: Request<Incoming>) -> Result<Bytes, Problem> {
    let body = Limited::new(request.into_body(), MAX_BODY).collect();
    let read = timeout(BODY_TIME, body).await;
    let read =
        read.map_err(|_| Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"))?;
    let read = read.map_err(|_| {
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("a request has at most {} MiB", MAX_BODY >> 20))
    })?;
    Ok(read.to_bytes())
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body).map_err(|why| Problem::new(StatusCode::BAD_REQUEST, why.to_string()))
}

/// The JSON that a short command printed, whatever its exit code is.
fn parsed(finished: &Finished) -> Result<Value, Problem> {
    serde_json::from_str(&finished.output).map_err(|_| Problem::from(finished.error.clone()))
}

fn done(finished: &Finished) -> Result<(), Problem> {
    if finished.exit_code == 0 { Ok(()) } else { Err(finished.error.clone().into()) }
}

fn refusal(why: Refusal) -> Answer {
    let (status, text) = match why {
        Refusal::ForeignHost => (StatusCode::MISDIRECTED_REQUEST, "this server has another name"),
        Refusal::ForeignOrigin => (StatusCode::FORBIDDEN, "only the window's own page may ask"),
        Refusal::NoToken => (
            StatusCode::UNAUTHORIZED,
            "the token is missing or wrong: open the address that talkpath ui printed",
        ),
    };
    problem_reply(&Problem::new(status, text))
}

fn problem_reply(problem: &Problem) -> Answer {
    let text = json!({ "error": problem.text }).to_string();
    reply(problem.status, "application/json", text.into(), OWN_POLICY)
}

fn reply(status: StatusCode, content_type: &'static str, body: Bytes, policy: &'static str) -> Answer {
    let mut reply = Response::new(Full::new(body));
    *reply.status_mut() = status;
    for (name, value) in [
        (CONTENT_TYPE, content_type),
        (CONTENT_SECURITY_POLICY, policy),
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CROSS_ORIGIN_RESOURCE_POLICY, "same-origin"),
        (CROSS_ORIGIN_OPENER_POLICY, "same-origin"),
    ] {
        reply.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    reply
}
