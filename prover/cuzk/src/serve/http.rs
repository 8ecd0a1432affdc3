//! The HTTP side: status, metrics, health and the live page.

use super::guard::{self, Guard};
use super::{Shared, metrics, report};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use serde_json::{Value, json};
use std::sync::Arc;

const PAGE: &str = include_str!("page.html");
/// The page's own style and script, its own daemon, and nothing else.
const PAGE_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
    connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The routes.
pub fn routes(shared: Arc<Shared>, guard: Guard) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/status", get(status))
        .route("/timeline", get(timeline))
        .route("/metrics", get(metrics_text))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .layer(middleware::from_fn_with_state(guard, guard::http))
        .with_state(shared)
}

async fn page() -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-cache"),
    ];
    (headers, PAGE).into_response()
}

async fn status(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(report::status(&shared))
}

async fn timeline(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(json!({"spans": shared.history.spans()}))
}

async fn metrics_text(State(shared): State<Arc<Shared>>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics::text(&shared)).into_response()
}

async fn ready(State(shared): State<Arc<Shared>>) -> (StatusCode, &'static str) {
    if shared.is_draining() {
        (StatusCode::SERVICE_UNAVAILABLE, "draining\n")
    } else if shared.is_ready() {
        (StatusCode::OK, "ready\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "preloading\n")
    }
}
