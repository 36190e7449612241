//! The header fields of a browser's request, for all measurements that imitate one.

/// The header fields that Firefox sends besides Host, with the session cookie of a Tomcat.
pub const BROWSER_FIELDS: [&str; 14] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/png,image/svg+xml,*/*;q=0.8",
    "Accept-Language: en-US,en;q=0.5",
    "Accept-Encoding: gzip, deflate, br, zstd",
    "Referer: http://www.example.org/shop/list?page=2",
    "DNT: 1",
    "Cookie: JSESSIONID=0123456789ABCDEF0123456789ABCDEF.n1; theme=dark; _ga=GA1.2.1234567890.1234567890",
    "Upgrade-Insecure-Requests: 1",
    "Sec-Fetch-Dest: document",
    "Sec-Fetch-Mode: navigate",
    "Sec-Fetch-Site: same-origin",
    "Sec-Fetch-User: ?1",
    "Priority: u=0, i",
    "Pragma: no-cache",
];
