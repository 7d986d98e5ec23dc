import EventLoopHTTP
import FCMModel
import GatewayCore
import HTTPTypes
import NIOCore

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Serves the manual's pages from a folder, which `make docs` builds. They need no credential.
struct ManualRoutes: Sendable {
    private static let path = "/docs"
    private static let types = [
        "html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8",
        "svg": "image/svg+xml", "png": "image/png", "txt": "text/plain; charset=utf-8",
    ]

    private let folder: String
    /// The files that are served, by their path in the folder. They are listed once, so no request leads out of it.
    private let files: Set<String>

    init(folder: String) {
        self.folder = folder
        let found = (try? FileManager.default.subpathsOfDirectory(atPath: folder)) ?? []
        self.files = Set(found.filter { Self.type(of: $0) != nil })
    }

    var endpoints: [any Endpoint] {
        [
            Handler(open: Route(.get, Self.path).with(\.dialect, .console)) { exchange in
                // The links of the first page are relative to the folder.
                let isFolder = exchange.request.head.pathBytes.starts(with: "\(Self.path)/".utf8)
                guard isFolder else { return ConsolePage(redirectTo: "\(Self.path)/").response() }
                return try await self.file("index.html")
            },
            Handler(open: Route(.get, "\(Self.path)/{file...}").with(\.dialect, .console)) {
                try await self.file($0.parameters.decoded("file") ?? "")
            },
        ]
    }

    private func file(_ name: String) async throws -> HTTPServerResponse {
        guard !self.files.isEmpty else {
            throw Refusal(
                .notFound,
                "The manual is not installed; make docs builds it, and admin.docsDirectory names it"
            )
        }
        guard self.files.contains(name), let type = Self.type(of: name),
            let data = await computeOffLoop({ FileManager.default.contents(atPath: "\(self.folder)/\(name)") })
        else { throw Refusal(.notFound, "The manual has no such page") }
        var response = HTTPServerResponse(status: .ok, body: ByteBuffer(bytes: data))
        response.headers.append(.contentType, type)
        response.headers.append(.cacheControl, "no-cache")
        // The search sets styles in its page.
        response.headers.appendPagePolicy(styles: "'self' 'unsafe-inline'")
        return response
    }

    private static func type(of name: String) -> String? {
        name.split(separator: ".").last.flatMap { Self.types[String($0)] }
    }
}
