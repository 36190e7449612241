//! The application side: AJP13 and HTTP/1.1 served to an application.
