import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

/// A page of the console, or the address of another page that the browser gets instead.
struct ConsolePage: Sendable {
    var title = ""
    var content: HTML = ""
    var status = HTTPResponse.Status.ok
    /// True if the script reads the page again every few seconds.
    var isLive = false
    /// The field of the answer that names the reason of a refusal.
    var code: String?
    var retryAfter: Int?
    /// True if the browser forgets the session.
    var endsSession = false
    private var location: String?

    init(_ title: String, _ content: HTML, status: HTTPResponse.Status = .ok, isLive: Bool = false) {
        (self.title, self.content, self.status, self.isLive) = (title, content, status, isLive)
    }

    init(redirectTo path: String) {
        (self.status, self.location) = (.seeOther, path)
    }

    init(_ refusal: Refusal) {
        let fields = refusal.fields.map { "<li><code>\($0.path)</code> \($0.detail)</li>" as HTML }
        let content: HTML = """
            <p role="alert" class="bad">\(refusal.detail ?? refusal.code.explanation)</p><ul>\(fields)</ul>
            \(refusal.code.status == 422 ? "<p>Go back to change what you entered.</p>" as HTML : nil)
            """
        self.init(refusal.code.title, content, status: HTTPResponse.Status(code: refusal.code.status))
        (self.code, self.retryAfter) = (refusal.code.rawValue, refusal.retryAfter)
    }

    /// The page with the navigation of an operator.
    func response(to request: ConsoleRequest) -> HTTPServerResponse {
        let caller = request.exchange.operator
        let path = request.exchange.request.head.pathBytes.prefix { $0 != UInt8(ascii: "?") }
        let items = ConsolePages.navigation
            .filter { page in AdminRoles.table["GET \(page.0)"].map { $0 <= caller?.role ?? .viewer } ?? false }
            .map { page -> HTML in
                let mark: HTML? = page.0.utf8.elementsEqual(path) ? " aria-current=\"page\"" : nil
                return "<li><a href=\"\(page.0)\"\(mark)>\(page.1)</a></li>"
            }
        var response = self.response(
            header: """
                <nav aria-label="Pages"><ul>\(items)</ul></nav>
                <form method="post" action="/console/log-out">\(request.formToken)
                <span>\(caller?.name ?? "admin") · \(caller?.role.rawValue)</span> <button>Log out</button></form>
                """
        )
        if self.endsSession { ConsoleCookie.session.set(nil, in: &response, to: request.exchange.request) }
        return response
    }

    /// The page as anybody sees it.
    func response(header: HTML? = nil) -> HTTPServerResponse {
        let page: HTML = """
            <!DOCTYPE html>
            <html lang="en"><head><meta charset="utf-8"><title>\(self.title) – fcm-gateway</title>
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <link rel="icon" href="/console/icon.svg"><link rel="stylesheet" href="/console/style.css">
            <script src="/console/script.js" defer></script></head>
            <body><a class="skip" href="#main">Skip to the content</a>
            <header><strong>fcm-gateway</strong>\(header)</header>
            <main id="main"\(self.isLive ? " data-live" as HTML : nil)><h1>\(self.title)</h1>
            \(self.content)</main></body></html>

            """
        var response = HTTPServerResponse(status: self.status)
        if let location = self.location {
            response.headers.append(.location, location)
        } else {
            response.body = ByteBuffer(string: page.text)
            response.headers.append(.contentType, "text/html; charset=utf-8")
        }
        if let retryAfter = self.retryAfter { response.headers.append(.retryAfter, String(retryAfter)) }
        response.headers.append(.cacheControl, "no-store")
        response.headers.appendPagePolicy()
        response.code = self.code
        return response
    }
}

extension HTTPHeaderLines {
    /// A page loads from this listener only, sends forms to it only, and no other page can frame it.
    mutating func appendPagePolicy(styles: String = "'self'") {
        self.append(
            .contentSecurityPolicy,
            "default-src 'none'; script-src 'self'; style-src \(styles); img-src 'self'; connect-src 'self'; "
                + "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
        )
        self.append(.referrerPolicy, "no-referrer")
        self.append(.contentTypeOptions, "nosniff")
    }
}
