# Functions with all call frame instructions that assemblers write, and by .cfi_escape those that they do not.
	.text
	.globl	plain
	.type	plain, @function
plain:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_offset rbx, -16
	.cfi_remember_state
	pop	%rbx
	.cfi_def_cfa_offset 8
	.cfi_restore rbx
	ret
	.cfi_restore_state
	nop
	.cfi_register rbx, r12
	nop
	.cfi_same_value rbx
	nop
	.cfi_undefined rbx
	nop
	.cfi_def_cfa rbp, 32
	nop
	.cfi_def_cfa_register r13
	.cfi_val_offset rbp, -24
	nop
	.cfi_endproc
	.size	plain, .-plain

	.globl	escaped
	.type	escaped, @function
escaped:
	.cfi_startproc
	nop
	.cfi_escape 0x12, 7, 0x7e		# def_cfa_sf rsp, -2 * -8
	nop
	.cfi_escape 0x13, 0x7c			# def_cfa_offset_sf -4 * -8
	nop
	.cfi_escape 0x0f, 3, 0x77, 8, 0x06	# def_cfa_expression breg7 8, deref
	nop
	.cfi_def_cfa rsp, 8
	.cfi_escape 0x10, 6, 2, 0x77, 0x18	# expression rbp: breg7 24
	nop
	.cfi_escape 0x16, 3, 2, 0x77, 0x20	# val_expression rbx: breg7 32
	nop
	.cfi_escape 0x2e, 16			# GNU_args_size
	.cfi_escape 0x05, 12, 4			# offset_extended r12
	nop
	.cfi_escape 0x11, 13, 0x7a		# offset_extended_sf r13, -6 * -8
	nop
	.cfi_escape 0x15, 14, 0x7d		# val_offset_sf r14, -3 * -8
	nop
	.cfi_escape 0x06, 12			# restore_extended r12
	nop
	.cfi_escape 0x2f, 15, 3			# GNU_negative_offset_extended r15
	nop
	.skip	300, 0x90
	.cfi_def_cfa_offset 16			# advance_loc2
	nop
	.skip	70000, 0x90
	.cfi_def_cfa_offset 24			# advance_loc4
	nop
	.cfi_endproc
	.size	escaped, .-escaped

	.globl	handled
	.type	handled, @function
handled:
	.cfi_startproc
	.cfi_signal_frame
	.cfi_personality 0x9b, reference
	.cfi_lsda 0x1b, table
	.cfi_undefined rip
	nop
	.cfi_endproc
	.size	handled, .-handled

	.globl	_start
	.type	_start, @function
_start:
	ret
	.size	_start, .-_start
	.data
reference:
	.quad	plain
	.section .rodata
table:
	.byte	0xff
	.section .note.GNU-stack, "", @progbits
