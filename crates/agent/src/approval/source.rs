//! Who settled a call, by the names that `on_tool_approval_decision` hooks read in `approval_source`.

use gatehook_engine::events::Event;

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct SourceSpec {
    /// The source.
    pub source: Source,
    /// Its name in the payload.
    pub name: &'static str,
    /// The event whose hooks settled it, if hooks did.
    pub hooks: Option<Event>,
    /// What it says.
    pub doc: &'static str,
}

macro_rules! sources {
    ($( $(#[doc = $doc:literal])+ $source:ident = $name:literal, $hooks:expr; )+) => {
        /// Who settled a call.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Source {
            $( $(#[doc = $doc])+ $source, )+
        }

        /// One row for each source.
        pub const SOURCES: &[SourceSpec] = &[
            $( SourceSpec { source: Source::$source, name: $name, hooks: $hooks, doc: concat!($($doc),+) }, )+
        ];
    };
}

sources! {
    /// A `tool_input_transform` hook blocked.
    ToolInputTransformDeny = "tool_input_transform_deny", Some(Event::ToolInputTransform);
    /// A `tool_guard` hook denied, or failed.
    ToolGuardDeny = "tool_guard_deny", Some(Event::ToolGuard);
    /// A `pre_tool_use` hook denied, or failed.
    PreToolUseDeny = "pre_tool_use_hook_deny", Some(Event::PreToolUse);
    /// A `pre_tool_use` hook allowed what the mode would have asked about.
    PreToolUseAllow = "pre_tool_use_hook_allow", Some(Event::PreToolUse);
    /// A `permission_request` hook denied in the person's place.
    PermissionRequestDeny = "permission_request_hook_deny", Some(Event::PermissionRequest);
    /// A `permission_request` hook allowed in the person's place.
    PermissionRequestAllow = "permission_request_hook_allow", Some(Event::PermissionRequest);
    /// A managed rule denies it.
    ManagedDeny = "managed_permissions_deny", None;
    /// A managed rule allows it.
    ManagedAllow = "managed_permissions_allow", None;
    /// A rule of the session denies it.
    SessionDeny = "session_permissions_deny", None;
    /// A rule of the session allows it.
    SessionAllow = "session_permissions_allow", None;
    /// A rule of the user or the workspace denies it.
    TeamDeny = "team_permissions_deny", None;
    /// A rule of the user or the workspace allows it.
    TeamAllow = "team_permissions_allow", None;
    /// The mode `balanced` allows what is safe.
    ModeBalanced = "mode_balanced", None;
    /// The mode `restricted` allows what is safe and denies the rest.
    ModeRestricted = "mode_restricted", None;
    /// The mode `autonomous` allows everything.
    Yolo = "yolo", None;
    /// Without a mode, a tool that only reads runs.
    ReadOnlyHint = "readonly_hint", None;
    /// The person approved this call.
    UserApproved = "user_approved", None;
    /// The person approved it, and changed the mode to `balanced`.
    UserApprovedBalanced = "user_approved_balanced", None;
    /// The person approved it, and changed the mode to `autonomous`.
    UserApprovedAutonomous = "user_approved_autonomous", None;
    /// The person approved it, and calls like it for the session.
    UserApprovedTool = "user_approved_tool", None;
    /// The person said no.
    UserRejected = "user_rejected", None;
    /// Nobody is there to ask.
    NonInteractiveDeny = "non_interactive_deny", None;
    /// The caller gave up before it was settled.
    ContextCanceled = "context_canceled", None;
}

impl Source {
    /// Its row.
    pub fn spec(self) -> &'static SourceSpec {
        // The table is written by the same macro as the enum: row N is variant N.
        #[expect(clippy::indexing_slicing, reason = "one row for each variant")]
        &SOURCES[self as usize]
    }

    /// The name in the payload, as in `user_approved`.
    pub fn name(self) -> &'static str {
        self.spec().name
    }
}
