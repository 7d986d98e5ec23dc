import FCMModel

/// The path that a project's messages go to.
enum V1Path {
    /// The path's template, for spans.
    static let sendTemplate = "/v1/projects/{project}/messages:send"

    /// The path; a project of a domain, `example.com:project`, keeps its colon.
    static func send(project: String) -> String {
        "/v1/projects/\(PercentEncoding.encoded(project, keeping: UInt8(ascii: ":")))/messages:send"
    }
}
