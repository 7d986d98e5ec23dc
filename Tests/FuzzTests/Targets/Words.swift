/// The words of the languages that targets read.
enum Words {
    static let json = [
        "{", "}", "[", "]", ":", ",", "\"", "\\\"", "\\\\", "\\/", "\\b", "\\u0041", "\\uD83D\\uDE00", "\\uD800",
        "\\uDC00", "\\uFEFF", "true", "false", "null", "0", "-0", "1.0", "1e9", "1E-9", "1e400", "9223372036854775807",
        "-9223372036854775808", "9223372036854775808", "\"a\"", "\"a\":1", "\u{FEFF}", "é", "e\u{301}", "😀", "\t",
        "\r\n", "[[[[[[[[[[[[[[[[", "]]]]]]]]]]]]]]]]",
    ]

    static let http = [
        "\r\n", "\r\n\r\n", "\n", "\r", " ", "\t", ":", ": ", "\0", "\u{7F}", "GET ", "POST ", "OPTIONS * ",
        " HTTP/1.1",
        " HTTP/1.0", "HTTP/1.1 200 OK\r\n", "HTTP/1.1 204 No Content\r\n", "HTTP/1.1 100 Continue\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "http://a/x", "Host: a\r\n", "Content-Length: 5\r\n",
        "Content-Length: 0\r\n", "Content-Length: +5\r\n", "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: chunked\r\n", "Transfer-Encoding: gzip, chunked\r\n", "Connection: close\r\n",
        "Connection: keep-alive\r\n", "Upgrade: h2c\r\n", "Expect: 100-continue\r\n", "X-A: b\r\n", " folded\r\n",
        "0\r\n\r\n", "5\r\nhello\r\n", "[::1]:80", "a:65535", "%20", "#", "?",
    ]

    static let chunks = [
        "0\r\n\r\n", "0\r\n", "1\r\na\r\n", "A\r\n0123456789\r\n", "f", "FF", "00000000", "7fffffffffffffff", ";a=b",
        ";", "\r\n", "\r", "\n", "X-A: b\r\n", ":", "\0",
    ]

    /// Frames, and fields of a block, of HTTP/2.
    static let http2 = [
        Self.frame(4), Self.frame(4, flags: 1), Self.frame(4, "\u{0}\u{3}\u{0}\u{0}\u{0}\u{1}"),
        Self.frame(3, stream: 1, "\u{0}\u{0}\u{0}\u{8}"), Self.frame(3, stream: 1, "\u{0}\u{0}\u{0}\u{7}"),
        Self.frame(7, "\u{0}\u{0}\u{0}\u{1}\u{0}\u{0}\u{0}\u{0}"), Self.frame(8, "\u{0}\u{1}\u{0}\u{0}"),
        Self.frame(6, "12345678"), Self.frame(0, flags: 1, stream: 1), Self.frame(0, stream: 1),
        Self.frame(0, flags: 1, stream: 1, "ok"), Self.frame(1, flags: 4, stream: 1, "\u{8}\u{3}200"),
        Self.frame(1, flags: 5, stream: 3, "\u{8}\u{3}204"), Self.frame(9, flags: 4, stream: 1),
        "\u{8}\u{3}200", "\u{8}\u{3}103", "\u{0}\u{1}a\u{1}b", "\u{0}\u{e}content-length\u{1}2",
        "\u{0}\u{a}connection\u{1}x",
    ]

    /// A frame (RFC 9113, section 4.1) with less than 128 bytes of content.
    private static func frame(_ kind: UInt8, flags: UInt8 = 0, stream: UInt8 = 0, _ content: String = "") -> String {
        let head = [0, 0, UInt8(content.utf8.count), kind, flags, 0, 0, 0, stream]
        return String(decoding: head, as: UTF8.self) + content
    }

    static let redis = [
        "\r\n", "\r", "\n", "+OK\r\n", "-ERR x\r\n", ":1\r\n", ":-9223372036854775808\r\n", "$3\r\nabc\r\n", "$-1\r\n",
        "$0\r\n\r\n", "*2\r\n", "*-1\r\n", "*0\r\n", "_\r\n", "#t\r\n", "#f\r\n", ",1.5\r\n", ",inf\r\n", ",nan\r\n",
        "(12345678901234567890\r\n", "!5\r\nERR x\r\n", "=7\r\ntxt:abc\r\n", "%1\r\n", "~2\r\n", ">1\r\n", "|1\r\n",
        "|0\r\n", "*1\r\n*1\r\n*1\r\n", "9999999999999999999", "-", "+", "$", "*",
    ]

    static let form = [
        "&", "=", "%", "+", "%20", "%00", "%C3%A9", "%ff", "%ED%A0%80", "registration_id=", "registration_id=a",
        "data.", "data.k=v", "data.google=x", "data.from=x", "collapse_key=c", "time_to_live=60",
        "time_to_live=2419201", "dry_run=true", "dry_run=1", "restricted_package_name=p", "%2Ftopics%2F", "/topics/",
        "\u{301}",
    ]

    static let legacy =
        Self.json + [
            "\"to\":\"a\"", "\"to\":\"/topics/a\"", "\"registration_ids\":[\"a\",\"b\"]", "\"registration_ids\":[\"\"]",
            "\"condition\":\"'a' in topics\"", "\"notification_key\":\"k\"", "\"collapse_key\":\"c\"",
            "\"priority\":\"high\"", "\"content_available\":true", "\"mutable_content\":false", "\"time_to_live\":60",
            "\"time_to_live\":6e1", "\"restricted_package_name\":\"p\"", "\"dry_run\":true", "\"data\":{\"k\":\"v\"}",
            "\"data\":{\"gcm\":1}", "\"notification\":{\"title\":\"t\"}", "\"badge\":\"1\"", "\"badge\":1",
            "\"color\":\"#aabbcc\"", "\"body_loc_args\":[\"a\",1,true]", "\"title_loc_args\":\"[]\"",
            "\"delay_while_idle\":1",
        ]

    static let answers =
        Self.json + [
            "\"multicast_id\":1", "\"success\":1", "\"failure\":0", "\"canonical_ids\":0", "\"results\":[",
            "{\"message_id\":\"0:1\"}", "{\"message_id\":1}", "\"registration_id\":\"b\"",
            "{\"error\":\"NotRegistered\"}",
            "{\"error\":\"Unavailable\"}", "\"failed_registration_ids\":[\"a\"]", "\"message_id\":5", "id=1\n",
            "registration_id=b\n", "Error=NotRegistered", "Error=Unavailable", "NotRegistered", "JSON_PARSING_ERROR: x",
            "\"data\" key \"from\" is a reserved keyword", "Missing \"registration_ids\" field",
            "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "120",
            "9223372036854775807", "1000", "1001", "Fri, 31 Dec 9999 23:59:59 GMT", "/topics/a",
            "{\"notification_key\":\"k\"}", "{\"error\":\"notification_key already exists\"}",
            "\"notification_key not found\"", "\"no valid registration ids\"", "Error decrypting GroupToken",
        ]

    static let v1Answers =
        Self.json + [
            "{\"name\":\"projects/p/messages/1\"}", "\"error\":{", "\"status\":\"NOT_FOUND\"", "\"details\":[",
            "\"message\":\"Requested entity was not found.\"", "\"status\":\"INVALID_ARGUMENT\"",
            "\"status\":\"RESOURCE_EXHAUSTED\"", "\"@type\":\"type.googleapis.com/google.firebase.fcm.v1.FcmError\"",
            "\"errorCode\":\"UNREGISTERED\"", "\"errorCode\":\"QUOTA_EXCEEDED\"", "\"errorCode\":\"UNAVAILABLE\"",
            "\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\"", "\"retryDelay\":\"3.5s\"",
            "\"retryDelay\":\"9223372036854775807.9s\"", "\"@type\":\"type.googleapis.com/google.rpc.ErrorInfo\"",
            "\"reason\":\"RATE_LIMIT_EXCEEDED\"", "\"@type\":\"type.googleapis.com/google.rpc.BadRequest\"",
            "\"fieldViolations\":[{\"field\":\"message.token\",\"description\":\"x\"}]", "{}", "120",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ]

    static let topicAnswers =
        Self.v1Answers + [
            "{\"results\":[{},{\"error\":\"NOT_FOUND\"},{}]}", "\"error\":\"TOO_MANY_TOPICS\"",
            "\"error\":\"RESOURCE_EXHAUSTED\"", "\"rel\":{\"topics\":{\"t\":{\"addDate\":\"2025-03-14\"}}}",
            "\"platform\":\"ANDROID\"", "\"topicSubscriptions\":[", "{\"topicName\":\"t\"}",
            "{\"name\":\"projects/p/registrations/a/topicSubscriptions/t\"}", "\"nextPageToken\":\"n\"",
            "\"createTime\":\"2026-01-15T01:30:15Z\"", "too many topics",
        ]

    static let tokenAnswers =
        Self.json + [
            "\"access_token\":\"ya29.x\"", "\"expires_in\":3599", "\"expires_in\":9223372036854775807",
            "\"error\":\"invalid_grant\"", "\"error_description\":\"x\"", "120", "Fri, 31 Dec 9999 23:59:59 GMT",
        ]

    static let v1 =
        Self.json + [
            "\"message\":{", "\"validate_only\":true", "\"validateOnly\":true", "\"token\":\"a\"", "\"fid\":\"a\"",
            "\"topic\":\"a\"", "\"condition\":\"!('a' in topics)\"", "\"data\":{\"k\":\"v\"}", "\"android\":{",
            "\"ttl\":\"3.5s\"", "\"ttl\":\"60s\"", "\"priority\":\"HIGH\"", "\"collapse_key\":\"c\"",
            "\"collapseKey\":\"c\"",
            "\"restricted_package_name\":\"p\"", "\"notification\":{\"title\":\"t\"}", "\"image\":\"https://a\"",
            "\"title_loc_args\":[\"a\"]", "\"bodyLocArgs\":[\"a\"]", "\"channel_id\":\"c\"", "\"color\":\"#aabbcc\"",
            "\"apns\":{", "\"headers\":{", "\"apns-priority\":\"10\"", "\"apns-expiration\":\"1700000060\"",
            "\"apns-collapse-id\":\"c\"", "\"payload\":{\"aps\":{", "\"alert\":\"a\"", "\"badge\":1", "\"sound\":\"s\"",
            "\"content-available\":1", "\"mutable-content\":1", "\"webpush\":{", "\"Urgency\":\"high\"",
            "\"TTL\":\"60\"",
            "\"fcm_options\":{", "\"link\":\"https://a\"", "\"analytics_label\":\"l\"", "\"notification_count\":1",
        ]

    static let condition = [
        "'a' in topics", "\"b\" in topics", "'", "\"", " && ", " || ", "&", "|", "!", "!(", "(", ")", " in ", "in",
        " IN ", "topics", "TOPICS", " ", "\t", "\r\n", "%", "~", "\u{A0}", "é", "((((((((((((((((", "))))))))))))))))",
    ]

    static let traces = [
        "00-", "01-", "ff-", "0af7651916cd43dd8448eb211c80319c", "-b7ad6b7169203331", "0000000000000000", "-00", "-01",
        "-", "\n", "a=1", "b@c=2", ",", "=", " ", "\t", "_", "*", "/", "A", "g", "\r", "é",
        "kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk",
    ]

    static let yaml = [
        "\n", "  ", "    ", ": ", ":", "- ", "-", "? ", "# ", "[", "]", "{", "}", ",", "'", "\"", "|\n", ">\n", "&a ",
        "*a",
        "!!str ", "!!int ", "!!null ", "<<: *a", "---\n", "...\n", "%YAML 1.2\n", "~", "null", "true", "0x1F", "1_000",
        "1:30", "8080", "\t", "\0", "\u{85}", "\u{FEFF}", "é", "http:\n", "http.port: 1\n", "  port: 8080\n",
        "  host: \"::\"\n", "  tls:\n    certificateFile: a.pem\n    privateKeyFile: a.key\n", "admin:\n",
        "dataDir: var\n",
        "eventLoops: 2\n", "masterKey: x\n", "store:\n  url: sqlite:a.db\n", "limits:\n  defaults:\n    topic: ",
        "[1/1s:1]\n", "1/1s:1", "upstream:\n", "  timeoutMs: 100\n",
        "  allowedTokenHosts: [a.b]\n", "  legacyEndpoint: https://a\n", "audit:\n  mode: strict\n",
        "log:\n  level: info\n", "  maxConnections: 1000\n",
    ]
}
