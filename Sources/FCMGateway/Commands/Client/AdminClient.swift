import Foundation

/// Speaks the admin API.
struct AdminClient: Sendable {
    /// The most elements one page holds.
    static let maxPageElements = 500

    private let api: APIClient

    /// Creates a client over calls to the admin listener.
    init(_ api: APIClient) {
        self.api = api
    }

    /// Makes one call below `/admin/v1`.
    ///
    /// - Parameters:
    ///   - method: The HTTP method.
    ///   - path: The segments after `/admin/v1`.
    ///   - query: The query's parameters.
    ///   - body: JSON text, sent as it is.
    /// - Returns: The answer, `.null` when it has no content.
    /// - Throws: `APIError` or `CommandFailure`.
    func call(
        _ method: APIClient.Method,
        _ path: [String],
        query: [(name: String, value: String)] = [],
        body: Data? = nil
    ) async throws -> JSONValue {
        try await self.api.call(method, ["admin", "v1"] + path, query: query, body: body)
    }

    /// Reads a list, page after page.
    ///
    /// - Parameters:
    ///   - path: The segments after `/admin/v1`.
    ///   - member: The member that holds a page's elements.
    ///   - query: Further parameters.
    ///   - limit: The most elements wanted; nil reads to the end.
    /// - Returns: The elements, in the gateway's order.
    /// - Throws: `APIError` or `CommandFailure`.
    func list(
        _ path: [String],
        member: String,
        query: [(name: String, value: String)] = [],
        limit: Int? = nil
    ) async throws -> [JSONValue] {
        var elements: [JSONValue] = []
        var cursor: String?
        while true {
            let wanted = limit.map { $0 - elements.count } ?? Self.maxPageElements
            let page = try await self.page(
                path,
                member: member,
                query: query,
                limit: min(wanted, Self.maxPageElements),
                cursor: cursor
            )
            elements += page.elements
            if let limit, elements.count >= limit {
                return Array(elements.prefix(limit))
            }
            guard let next = page.nextCursor else { return elements }
            guard next != cursor else {
                throw CommandFailure("the gateway repeated a page's cursor")
            }
            cursor = next
        }
    }

    /// Reads one page of a list.
    ///
    /// - Parameters:
    ///   - path: The segments after `/admin/v1`.
    ///   - member: The member that holds the elements.
    ///   - query: Further parameters.
    ///   - limit: The most elements wanted, at most `maxPageElements`.
    ///   - cursor: Where the page begins; nil for the first.
    /// - Returns: The elements, and the next page's cursor.
    /// - Throws: `APIError` or `CommandFailure`.
    func page(
        _ path: [String],
        member: String,
        query: [(name: String, value: String)],
        limit: Int,
        cursor: String?
    ) async throws -> (elements: [JSONValue], nextCursor: String?) {
        var query = query
        query.append((name: "limit", value: String(limit)))
        if let cursor {
            query.append((name: "cursor", value: cursor))
        }
        let answer = try await self.call(.get, path, query: query)
        guard let elements = answer[member]?.elements else {
            throw CommandFailure("the gateway's answer has no list \"\(member)\"")
        }
        return (elements, answer["next_cursor"]?.text)
    }
}
